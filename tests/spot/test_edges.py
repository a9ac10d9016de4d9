"""Where samples begin and end: prompts off the grid, stop ids, budgets, banned ids.

Every outcome is compared with one that is decoded from the definition.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import Drafter
from spot.limits import Limits
from spot.transition import Rule
from tests.spot.enumeration import Enumeration, Path
from tests.spot.lineup import MODES, Moves, Outcome, decode_all, decode_one, make_drafter, prompts
from tests.spot.toy import LENGTH, MASK_ID, NUM_TOKENS, OUTSIDE_ID, Ids, ToyTarget, mixed_table

RULES = (
    Rule(),
    Rule(temperature=1.0),
    Rule(name="threshold", tau=0.5),
    Rule(name="threshold", tau=0.5, temperature=1.0),
)
TARGET = ToyTarget(mixed_table)
NUM_PROMPT = (1, LENGTH - 1, LENGTH, LENGTH + 1, 2 * LENGTH - 1)
ENDS = ((1, 0, ()), (6, 0, ()), (6, 0, (0,)), (9, 0, (1, 2)), (9, 5, (1, 2)))


def _samples() -> list[Sample]:
    """All of the above, with a key of its own for each."""
    found: list[Sample] = []
    for num_prompt, (max_tokens, min_tokens, stops) in product(NUM_PROMPT, ENDS):
        limits = Limits(
            prompt_tokens=num_prompt,
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            stop_ids=frozenset(stops),
        )
        found += prompts(num_prompt, keys=1, limits=limits)
    return [replace(sample, key=2**64 - 1 - row) for row, sample in enumerate(found)]


SAMPLES = _samples()


def _defined(sample: Sample, rule: Rule) -> Path:
    return Enumeration(
        mixed_table, prompt=sample.prompt_ids, rule=rule, limits=sample.limits
    ).decode(sample.key)


def _output(sample: Sample, path: Path) -> tuple[Ids, str]:
    """Output and finish reason of a trajectory."""
    tokens, limits = dict(commit for move in path for commit in move), sample.limits
    ids: list[int] = []
    for position in range(limits.prompt_tokens, limits.end):
        if tokens[position] in limits.stop_ids and len(ids) >= limits.min_tokens:
            return tuple(ids), "stop"
        ids.append(tokens[position])
    return tuple(ids), "length"


def _commits(outcome: Outcome) -> list[tuple[int, int, int]]:
    trace = outcome.trace
    return list(zip(trace.steps, trace.positions, trace.tokens, strict=True))


@cache
def _expected(rule: Rule) -> list[tuple[Ids, str, list[tuple[int, int, int]]]]:
    found = []
    for sample in SAMPLES:
        path = _defined(sample, rule)
        commits = [(step, p, t) for step, move in enumerate(path) for p, t in move]
        found.append((*_output(sample, path), commits))
    return found


def _assert_as_defined(found: list[Outcome], rule: Rule, rows: range) -> None:
    for outcome, row in zip(found, rows, strict=True):
        seen = (outcome.token_ids, outcome.finish_reason, _commits(outcome))
        assert seen == _expected(rule)[row], SAMPLES[row]


@cache
def _moves(rule: Rule) -> Moves:
    decoder = ReferenceDecoder(TARGET, rule=rule)
    return {sample.key: decoder.decode(sample).trajectory.moves for sample in SAMPLES}


def _drafter(name: str, rule: Rule) -> Drafter | None:
    return None if name == "nothing" else make_drafter(name, rule=rule, moves=_moves(rule))


@pytest.mark.parametrize("name", ["nothing", "spot", "chain", "joint", "hostile"])
@pytest.mark.parametrize("rule", RULES)
def test_the_engine_begins_and_ends_as_defined(name: str, rule: Rule) -> None:
    for turn, mode in enumerate(MODES[:2]):
        rows = range(turn, len(SAMPLES), 2)
        found = decode_all(
            TARGET,
            [SAMPLES[row] for row in rows],
            rule=rule,
            drafter=_drafter(name, rule),
            budget=8,
            mode=mode,
        )
        _assert_as_defined(found, rule, rows)


@pytest.mark.parametrize("name", ["nothing", "chain", "hostile"])
@pytest.mark.parametrize("rule", RULES)
def test_the_reference_begins_and_ends_as_defined(name: str, rule: Rule) -> None:
    drafter, rows = _drafter(name, rule), range(0, len(SAMPLES), 3)
    found = [decode_one(TARGET, SAMPLES[row], rule=rule, drafter=drafter, budget=8) for row in rows]
    _assert_as_defined(found, rule, rows)


def test_every_edge_is_among_the_samples() -> None:
    ends = [
        (sample, ids, reason)
        for rule in RULES
        for sample, (ids, reason, _) in zip(SAMPLES, _expected(rule), strict=True)
    ]
    full = [s.limits.max_tokens - 1 == len(ids) and reason == "stop" for s, ids, reason in ends]
    assert any(full), "a stop id at the last allowed position"
    assert any(s.limits.stop_ids & {*s.prompt_ids} and len(ids) > 0 for s, ids, _ in ends)
    assert any(s.limits.stop_ids & {*ids} for s, ids, _ in ends), "one that came too early"
    assert any(s.limits.end % LENGTH and reason == "length" for s, _, reason in ends)
    assert any(ids == () for _, ids, _ in ends), "a stop id first of all"


def test_a_stop_id_inside_an_accepted_draft_ends_the_sample_there() -> None:
    """With true drafts a block takes two rounds, so its third transition is made at a draft."""
    for rule in RULES[:2]:
        met = 0
        for sample, (ids, reason, commits) in zip(SAMPLES, _expected(rule), strict=True):
            last = [step for step, p, _ in commits if p // LENGTH == commits[-1][1] // LENGTH]
            if reason == "stop" and len(last) >= 3:
                drafter, met = _drafter("joint", rule), met + 1
                decoder = ReferenceDecoder(TARGET, rule=rule, drafter=drafter, budget=8)
                decoded = decoder.decode(sample)
                assert (decoded.token_ids, decoded.finish_reason) == (ids, reason)
                assert decoded.trajectory.transitions == len(commits)
                assert decoded.trajectory.cost.accepted >= len(last) - 2
        assert met > 0


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_banned_ids_are_never_committed_however_good_their_logits(temperature: float) -> None:
    blank = mixed_table((0,) * LENGTH, (MASK_ID,) * LENGTH)
    assert set(blank.argmax(1)) <= {MASK_ID, OUTSIDE_ID}
    found = decode_all(TARGET, SAMPLES[:40], rule=Rule(temperature=temperature))
    assert {token for outcome in found for token in outcome.trace.tokens} == {*range(NUM_TOKENS)}
