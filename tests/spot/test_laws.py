"""What each verifier emits: samples of many keys against the exact law of all trajectories."""

from collections.abc import Callable
from typing import Any

import pytest

import spot.drafters.chain
import spot.rejection
from spot import noise
from spot.decoder import Sample
from spot.drafters.chain import ChainDrafter
from spot.limits import Limits
from spot.transition import Rule
from spot.verification import VerifierName
from tests.spot.chi_square import p_value
from tests.spot.enumeration import Enumeration, Path
from tests.spot.lineup import MODES, Mode, Outcome, decode_all, decode_one, make_drafter
from tests.spot.toy import MASK_ID, ToyTarget, steady_table

RULES = {
    "T1": Rule(temperature=1.0),
    "T1.5": Rule(temperature=1.5),
    "top_k": Rule(temperature=1.5, top_k=2),
    "top_p": Rule(temperature=1.0, top_p=0.8),
}
SURE, LOOK_THROUGH, REUSE = 1e-9, MODES[0], MODES[1]


def _samples(num: int, *, length: int, max_tokens: int) -> list[Sample]:
    """Behind one full block."""
    limits = Limits(prompt_tokens=length, max_tokens=max_tokens)
    prompt = (2,) * length
    keys = [key * 0x9E3779B97F4A7C15 % 2**64 for key in range(num)]
    return [Sample(prompt_ids=prompt, key=key, limits=limits) for key in keys]


def _path(outcome: Outcome) -> Path:
    """Every transition of the strict rule is one commit."""
    trace = outcome.trace
    return tuple(((p, t),) for p, t in zip(trace.positions, trace.tokens, strict=True))


def _p_value(
    rule: Rule,
    *,
    verifier: VerifierName,
    drafter: str = "chain",
    num: int = 400,
    length: int = 3,
    max_tokens: int = 3,
    mode: Mode = REUSE,
) -> float:
    samples = _samples(num, length=length, max_tokens=max_tokens)
    table = ToyTarget(steady_table, length=length)
    law = Enumeration(
        steady_table,
        prompt=samples[0].prompt_ids,
        rule=rule,
        limits=samples[0].limits,
        length=length,
    ).law()
    sampled = ChainDrafter(rule=rule, mask_id=MASK_ID, sampled=True)
    found = decode_all(
        table,
        samples,
        rule=rule,
        drafter=sampled if verifier == "rejection" else make_drafter(drafter, rule=rule, moves={}),
        budget=6,
        verifier=verifier,
        mode=mode,
        batch=200,
        num_pages=2000,
    )
    return p_value([_path(outcome) for outcome in found], law)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_rejection_sampling_emits_the_targets_law(rule: Rule) -> None:
    assert _p_value(rule, verifier="rejection") > 0.001


def test_rejection_sampling_emits_the_targets_law_across_blocks() -> None:
    rule = RULES["T1.5"]
    assert _p_value(rule, verifier="rejection", length=2, max_tokens=4, mode=LOOK_THROUGH) > 0.001


@pytest.mark.parametrize(("drafter", "rule"), [("spot", "T1"), ("confidence", "top_p")])
def test_coupled_verification_emits_the_targets_law(drafter: str, rule: str) -> None:
    assert _p_value(RULES[rule], verifier="coupled", drafter=drafter) > 0.001


@pytest.mark.parametrize(("drafter", "rule"), [("uncoupled", "T1.5"), ("uncoupled_chain", "top_k")])
def test_uncoupled_verification_emits_the_targets_law(drafter: str, rule: str) -> None:
    assert _p_value(RULES[rule], verifier="uncoupled", drafter=drafter) > 0.001


@pytest.mark.parametrize("drafter", ["uncoupled", "uncoupled_chain"])
def test_greedy_verification_does_not_and_the_test_sees_it(drafter: str) -> None:
    assert _p_value(RULES["T1.5"], verifier="greedy", drafter=drafter) < SURE


def _keyed_by_position_alone(made: Callable[..., Any]) -> Callable[..., Any]:
    """Noise of the commits' own stream, whatever it is for."""
    return lambda *names, **_: made(*names, step=0, stream=noise.COMMITS)


@pytest.mark.parametrize(
    "reused",
    [
        [(spot.rejection, "uniform"), (spot.drafters.chain, "gumbel")],
        [(spot.rejection, "uniform"), (spot.rejection, "gumbel"), (spot.drafters.chain, "gumbel")],
    ],
    ids=["acceptance_and_drafts", "everything"],
)
def test_rejection_sampling_without_streams_of_its_own_would_be_seen(
    reused: list[tuple[Any, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in reused:
        monkeypatch.setattr(module, name, _keyed_by_position_alone(getattr(noise, name)))
    assert _p_value(RULES["T1.5"], verifier="rejection") < SURE


@pytest.mark.parametrize("verifier", ["greedy", "rejection"])
def test_both_decoders_verify_alike(verifier: VerifierName) -> None:
    """Equal sample by sample, for whatever the law, as long as full states are not drafted."""
    rule, samples = RULES["T1.5"], _samples(6, length=4, max_tokens=6)
    table = ToyTarget(steady_table)
    drafter = ChainDrafter(
        rule=rule, mask_id=MASK_ID, coupled=False, sampled=verifier == "rejection"
    )
    found = decode_all(
        table,
        samples,
        rule=rule,
        drafter=drafter,
        budget=2,
        verifier=verifier,
        mode=Mode("drop"),
    )
    assert found == [
        decode_one(table, sample, rule=rule, drafter=drafter, budget=2, verifier=verifier)
        for sample in samples
    ]
