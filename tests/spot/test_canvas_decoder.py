"""Decoding of bidirectional targets: against a plain one, and drafted against draft-free."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from spot.canvas_decoder import CanvasDecoder, open_canvas
from spot.decoder import Sample
from spot.drafters.stale_rule import StaleRuleDrafter
from spot.limits import Limits
from spot.targets.base import CacheContext, Canvas, CanvasUnit
from spot.targets.canvas import NativeCanvasTarget
from spot.trajectory import Decoded
from spot.transition import Rule, RuleName
from tests.checkpoints import FamilyName, write_released
from tests.spot.hostile import Hostile
from tests.spot.lineup import make_drafter
from tests.spot.plain_canvas import PlainCanvas
from tests.spot.toy import LENGTH, MASK_ID, VOCAB_ROWS, mixed_table
from tests.spot.toy_canvas import ToyCanvas

L = 8
FAMILIES: tuple[FamilyName, ...] = ("llada", "dream")
CONTEXTS: tuple[CacheContext, ...] = ("prefix", "prefix+suffix")
PROMPTS = (1, L - 1, L, L + 1, 2 * L - 1)
NO_STOPS: frozenset[int] = frozenset()


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[FamilyName, Path]:
    """A checkpoint of each family, in its released layout."""
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("canvas")
    return {family: write_released(family, root / family) for family in FAMILIES}


@cache
def _target(directory: Path) -> NativeCanvasTarget:
    return NativeCanvasTarget.load(directory, block_length=L, dtype="float64")


def _sample(num_prompt: int, *, max_tokens: int, stops: frozenset[int] = NO_STOPS) -> Sample:
    prompt = tuple(int(i) for i in np.random.default_rng(num_prompt).integers(0, 256, num_prompt))
    limits = Limits(prompt_tokens=num_prompt, max_tokens=max_tokens, stop_ids=stops)
    return Sample(prompt_ids=prompt, key=77 + num_prompt, limits=limits)


def _pairs(decoded: Decoded) -> list[tuple[int, int]]:
    return [(c.position, c.token) for c in decoded.trajectory.commits]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_and_commit_order_are_those_of_a_plain_decoder_in_fp64(
    directories: dict[FamilyName, Path],
    family: FamilyName,
    context: CacheContext,
    temperature: float,
) -> None:
    plain = PlainCanvas(family, directories[family], block_length=L)
    rule = Rule(temperature=temperature)
    decoder = CanvasDecoder(_target(directories[family]), rule=rule, context=context)
    for num_prompt in PROMPTS:
        sample = _sample(num_prompt, max_tokens=L + 3)
        expected = plain.decode(
            list(sample.prompt_ids),
            max_tokens=L + 3,
            context=context,
            temperature=temperature,
            key=sample.key,
        )
        assert _pairs(decoder.decode(sample)) == expected, num_prompt


@pytest.mark.parametrize("family", FAMILIES)
def test_drafts_change_nothing_under_the_same_frozen_canvas(
    directories: dict[FamilyName, Path], family: FamilyName
) -> None:
    target = _target(directories[family])
    for context, temperature in zip(CONTEXTS, (0.0, 1.0), strict=True):
        rule = Rule(temperature=temperature)
        free = CanvasDecoder(target, rule=rule, context=context)
        drafter = StaleRuleDrafter(rule=rule, mask_id=target.spec.mask_id)
        drafted = CanvasDecoder(target, rule=rule, context=context, drafter=drafter, budget=4)
        sample = _sample(L + 1, max_tokens=2 * L)
        one, other = free.decode(sample), drafted.decode(sample)
        assert other.trajectory.cost.drafted > 0
        assert other.trajectory.commits == one.trajectory.commits
        assert (other.token_ids, other.finish_reason) == (one.token_ids, one.finish_reason)


RULES = (
    *(Rule(temperature=t) for t in (0.0, 1.0)),
    *(Rule(name="threshold", tau=0.8, temperature=t) for t in (0.0, 1.0)),
    Rule(name="low_confidence_static", temperature=1.0, denoising_steps=3),
    Rule(name="low_confidence_dynamic", tau=0.8, temperature=1.0),
)
TOY_PROMPTS = (1, LENGTH - 1, LENGTH, LENGTH + 1)


def _toy_samples() -> list[Sample]:
    return [
        Sample(
            prompt_ids=tuple((kind + 3 * p) % 4 for p in range(num_prompt)),
            key=2**63 + 100 * kind + num_prompt,
            limits=Limits(prompt_tokens=num_prompt, max_tokens=7, stop_ids=frozenset({3})),
        )
        for kind, num_prompt in enumerate(TOY_PROMPTS)
    ]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.name}-{r.temperature:g}")
def test_no_drafter_can_change_an_output(rule: Rule, context: CacheContext) -> None:
    target = ToyCanvas(mixed_table)
    free = {
        s.key: CanvasDecoder(target, rule=rule, context=context).decode(s) for s in _toy_samples()
    }
    moves = {key: decoded.trajectory.moves for key, decoded in free.items()}
    drafters = (
        StaleRuleDrafter(rule=rule, mask_id=MASK_ID),
        make_drafter("joint", rule=rule, moves=moves),
        Hostile(3, mask_id=MASK_ID, num_tokens=VOCAB_ROWS),
    )
    accepted = 0
    for drafter in drafters:
        decoder = CanvasDecoder(target, rule=rule, context=context, drafter=drafter, budget=5)
        for sample in _toy_samples():
            drafted = decoder.decode(sample)
            assert drafted.trajectory.moves == free[sample.key].trajectory.moves
            assert drafted[:2] == free[sample.key][:2]
            accepted += drafted.trajectory.cost.accepted
    assert accepted > 0


def test_the_canvas_holds_the_whole_budget_from_the_prompts_end() -> None:
    prompt = np.array([1, 2, 3])
    canvas = open_canvas(prompt, max_tokens=5, length=4, mask_id=9)
    assert canvas.tolist() == [1, 2, 3] + [9] * 8


def test_the_grid_begins_at_the_prompts_end_and_each_block_opens_the_whole_canvas_once() -> None:
    target = ToyCanvas(mixed_table)
    sample = Sample(
        prompt_ids=(0, 1, 2, 3, 0),
        key=5,
        limits=Limits(prompt_tokens=5, max_tokens=2 * LENGTH),
    )
    decoded = CanvasDecoder(target, rule=Rule(), context="prefix").decode(sample)
    assert [start for _, start in target.openings] == [5, 5 + LENGTH]
    assert {len(canvas) for canvas, _ in target.openings} == {5 + 2 * LENGTH}
    first, second = (canvas for canvas, _ in target.openings)
    assert (first[5:] == MASK_ID).all()
    assert second[5 : 5 + LENGTH].tolist() == list(decoded.token_ids[:LENGTH])
    cost = decoded.trajectory.cost
    assert (cost.nfe, cost.nfe_prefill, cost.nfe_store) == (2 * LENGTH, 0, 0)
    assert cost.positions == 2 * (5 + 2 * LENGTH) + 2 * (LENGTH - 1) * LENGTH


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", ["strict", "threshold"])
def test_penalized_ids_commit_later_and_drafts_change_nothing(
    name: RuleName, temperature: float
) -> None:
    target, tau = ToyCanvas(mixed_table), 0.6 if name == "threshold" else None
    free = Rule(name=name, tau=tau, temperature=temperature)
    penalized = replace(free, confidence_penalty=50.0, penalized_ids=(0, 1))
    accepted, moved = 0, False
    for key in range(6):
        limits = Limits(prompt_tokens=1, max_tokens=2 * LENGTH, stop_ids=NO_STOPS)
        sample = Sample(prompt_ids=(key % 3,), key=key, limits=limits)
        plain = CanvasDecoder(target, rule=free, context="prefix").decode(sample)
        alone = CanvasDecoder(target, rule=penalized, context="prefix").decode(sample)
        for drafter in (
            StaleRuleDrafter(rule=penalized, mask_id=MASK_ID),
            make_drafter("joint", rule=penalized, moves={key: alone.trajectory.moves}),
        ):
            drafted = CanvasDecoder(
                target, rule=penalized, context="prefix", drafter=drafter, budget=4
            ).decode(sample)
            assert drafted.trajectory.moves == alone.trajectory.moves
            accepted += drafted.trajectory.cost.accepted
        moved |= alone.trajectory.moves != plain.trajectory.moves
    assert accepted > 0
    assert moved


def test_the_output_budget_is_an_input_of_the_model() -> None:
    """Unlike with exact pages, a larger budget does not only add tokens."""
    target = ToyCanvas(mixed_table)

    def tokens(max_tokens: int) -> list[tuple[int, ...]]:
        decoder = CanvasDecoder(target, rule=Rule(), context="prefix")
        return [
            decoder.decode(
                Sample(
                    prompt_ids=s.prompt_ids,
                    key=s.key,
                    limits=Limits(prompt_tokens=len(s.prompt_ids), max_tokens=max_tokens),
                )
            ).token_ids[:LENGTH]
            for s in _toy_samples()
        ]

    assert tokens(LENGTH) != tokens(2 * LENGTH)


def test_a_stop_id_ends_the_sample_and_later_blocks_are_never_opened() -> None:
    target = ToyCanvas(mixed_table)
    free = CanvasDecoder(target, rule=Rule(), context="prefix")
    prompt, key = (2, 1, 3), 11
    long = Limits(prompt_tokens=3, max_tokens=3 * LENGTH)
    whole = free.decode(Sample(prompt_ids=prompt, key=key, limits=long))
    stop = whole.token_ids[1]
    first = whole.token_ids.index(stop)
    target.opening_forwards.clear()
    limits = Limits(prompt_tokens=3, max_tokens=3 * LENGTH, stop_ids=frozenset({stop}))
    decoded = free.decode(Sample(prompt_ids=prompt, key=key, limits=limits))
    assert (decoded.token_ids, decoded.finish_reason) == (whole.token_ids[:first], "stop")
    assert len(target.openings) == 1


def test_the_two_contexts_are_two_decoders() -> None:
    target, found = ToyCanvas(mixed_table), []
    for context in CONTEXTS:
        decoder = CanvasDecoder(target, rule=Rule(), context=context)
        found.append([decoder.decode(s).token_ids for s in _toy_samples()])
    assert found[0] != found[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_only_shifted_logits_carry_the_row_before_the_block_over_its_boundary(
    directories: dict[FamilyName, Path], family: FamilyName
) -> None:
    target = _target(directories[family])
    canvas = open_canvas(np.arange(5), max_tokens=2 * L, length=L, mask_id=target.spec.mask_id)
    (opened,) = target.open([Canvas(canvas, 5)], context="prefix")
    state = canvas[5 : 5 + L].copy()
    state[4] = 65
    first = target.hidden([CanvasUnit(state=state, opened=opened)])[0, 0]
    assert torch.equal(first, opened.hidden[0]) == (family == "dream")


def test_the_first_position_behind_a_boundary_competes_like_the_others(
    directories: dict[FamilyName, Path],
) -> None:
    decoder = CanvasDecoder(_target(directories["dream"]), rule=Rule(), context="prefix")
    opening_commits = set()
    for num_prompt in PROMPTS:
        moves = decoder.decode(_sample(num_prompt, max_tokens=2 * L)).trajectory.moves
        opening_commits |= {moves[b * L][0].position - num_prompt - b * L for b in range(2)}
    assert opening_commits - {0}
