"""The walks of a round: each sample follows the target through its own evaluated states."""

from dataclasses import replace

import torch

from spot.rejection import rejection
from spot.targets.base import Conditionals
from spot.transition import Rule
from spot.verification import (
    Stepper,
    Transitions,
    VerifierName,
    Walk,
    coupled,
    greedy,
    signed,
    transitions,
    walk,
)
from workers.rounds import Entry
from workers.samples import SampleRequest


def walk_entries(
    entries: list[Entry],
    found: Conditionals,
    *,
    rule: Rule,
    verifier: VerifierName,
    mask_id: int,
) -> list[Walk]:
    """One walk per entry, in order; transitions of one temperature are computed in one call.

    Counts the transitions on the path that a tie break settled.

    Args:
        entries: the samples' parts of the round.
        found: conditionals of all evaluated states.
        rule: the transition rule; a sample may have a temperature of its own.
        verifier: how drafts are accepted.
        mask_id: the mask.
    """
    groups: dict[Rule, list[int]] = {}
    for index, entry in enumerate(entries):
        groups.setdefault(rule_for(rule, entry.sequence.request), []).append(index)
    walks: dict[int, Walk] = {}
    for own_rule, indices in groups.items():
        group = [entries[index] for index in indices]
        made = _walk_group(group, found, rule=own_rule, verifier=verifier, mask_id=mask_id)
        walks |= zip(indices, made, strict=True)
    return [walks[index] for index in range(len(entries))]


def rule_for(rule: Rule, request: SampleRequest) -> Rule:
    """The rule under which a sample is decoded."""
    if request.temperature is None or request.temperature == rule.temperature:
        return rule
    return replace(rule, temperature=request.temperature)


def _walk_group(
    entries: list[Entry],
    found: Conditionals,
    *,
    rule: Rule,
    verifier: VerifierName,
    mask_id: int,
) -> list[Walk]:
    """The walks of entries under one rule."""
    keys = [[signed(e.sequence.request.key)] * len(e.states) for e in entries]
    phi = transitions(
        found,
        states=torch.tensor([index for e in entries for index in e.indices]),
        starts=torch.tensor([start for e in entries for start in e.starts()]),
        keys=torch.tensor([key for part in keys for key in part]),
        steps=torch.tensor([step for e in entries for step in e.steps]),
        rule=rule,
    )
    first, walks = 0, []
    for entry in entries:
        sequence = entry.sequence
        made = walk(
            entry.states,
            _stepper(entry, found, phi, first=first, rule=rule, verifier=verifier),
            start=sequence.start,
            mask_id=mask_id,
            limits=sequence.limits,
            openings=entry.openings,
            steps=entry.steps if rule.counts_steps else None,
        )
        sequence.trajectory.cost.tied += int(phi.tied[[first + i for i in made.path]].sum())
        walks.append(made)
        first += len(entry.states)
    return walks


def _stepper(
    entry: Entry,
    found: Conditionals,
    phi: Transitions,
    *,
    first: int,
    rule: Rule,
    verifier: VerifierName,
) -> Stepper:
    """What the verifier does at each of a sample's states."""
    if verifier == "greedy":
        return greedy(phi, first)
    if verifier != "rejection":
        return coupled(phi, first)
    sequence = entry.sequence
    return rejection(
        found,
        phi,
        first=first,
        states=entry.indices,
        proposals=entry.drafts.proposals,
        start=sequence.start,
        step=sequence.step,
        key=sequence.request.key,
        rule=rule,
    )
