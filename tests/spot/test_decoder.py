"""The reference decoder: against an independent one, and drafted against draft-free."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.order_model import OrderModel
from spot.drafters.spot import SpotDrafter
from spot.limits import Limits
from spot.targets.paged import PagedTarget
from spot.trajectory import Decoded
from spot.transition import Rule
from tests.spot.hostile import Hostile
from tests.spot.plain import PlainDecoder
from tests.twins import BLOCK_LENGTH, MASK_ID, PAD_ID, STOP_ID

STOPS = frozenset({STOP_ID, PAD_ID})
L = BLOCK_LENGTH


def _sample(
    num_prompt: int, *, key: int = 3, max_tokens: int = 12, stops: frozenset[int] = STOPS
) -> Sample:
    prompt = tuple(int(i) for i in np.random.default_rng(num_prompt).integers(0, 256, num_prompt))
    limits = Limits(prompt_tokens=num_prompt, max_tokens=max_tokens, stop_ids=stops)
    return Sample(prompt_ids=prompt, key=key, limits=limits)


def _commits(decoded: Decoded) -> list[tuple[int, int]]:
    return [(c.position, c.token) for c in decoded.trajectory.commits]


@pytest.fixture(scope="module")
def plain(twin_path: Path) -> PlainDecoder:
    return PlainDecoder(twin_path, block_length=L)


@pytest.mark.parametrize("num_prompt", [1, L - 1, L, L + 1, 2 * L - 1, 2 * L, 5 * L + 3])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_draft_free_decoding_equals_the_plain_decoder(
    twin: PagedTarget, plain: PlainDecoder, num_prompt: int, temperature: float
) -> None:
    sample = _sample(num_prompt)
    decoded = ReferenceDecoder(twin, rule=Rule(temperature=temperature)).decode(sample)
    ids, commits = plain.decode(
        list(sample.prompt_ids), max_tokens=12, temperature=temperature, key=sample.key
    )
    assert _commits(decoded) == commits
    assert list(decoded.token_ids) == ids


def test_draft_free_decoding_costs_one_forward_per_commit(twin: PagedTarget) -> None:
    trajectory = ReferenceDecoder(twin, rule=Rule()).decode(_sample(L + 3)).trajectory
    assert trajectory.cost.nfe == trajectory.transitions
    assert trajectory.cost.nfe_prefill == 1
    assert trajectory.cost.nfe_store == 0


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_prompt=st.integers(1, 2 * L + 1),
    temperature=st.sampled_from([0.0, 0.7, 1.5]),
)
def test_no_drafter_can_change_an_output(
    twin: PagedTarget, seed: int, num_prompt: int, temperature: float
) -> None:
    rule, sample = Rule(temperature=temperature), _sample(num_prompt, key=seed, max_tokens=9)
    free = ReferenceDecoder(twin, rule=rule).decode(sample)
    drafter = Hostile(seed, mask_id=MASK_ID, num_tokens=260)
    drafted = ReferenceDecoder(twin, rule=rule, drafter=drafter, budget=5).decode(sample)
    assert drafted.trajectory.commits == free.trajectory.commits
    assert drafted.token_ids == free.token_ids
    assert drafted.finish_reason == free.finish_reason


class Clairvoyant:
    """Proposes the true continuation, several commits deep, with decoys around it."""

    def __init__(self, truth: Decoded) -> None:
        self._commits = truth.trajectory.commits

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        return [self._one(request) for request in requests]

    def _one(self, request: DraftRequest) -> Drafts:
        state, states = request.root.copy(), []
        for commit in self._commits:
            inside = 0 <= commit.position - request.start < len(state)
            if inside and state[commit.position - request.start] == MASK_ID:
                state = state.copy()
                state[commit.position - request.start] = commit.token
                if (state == MASK_ID).any():
                    states += [state, np.full_like(state, MASK_ID)]
        states = states or [request.root]
        return Drafts(np.stack(states), np.ones(len(states), np.float32), np.arange(len(states)))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_true_drafts_are_accepted_and_save_forwards(twin: PagedTarget, temperature: float) -> None:
    rule, sample = Rule(temperature=temperature), _sample(5, max_tokens=20, stops=frozenset())
    free = ReferenceDecoder(twin, rule=rule).decode(sample)
    drafted = ReferenceDecoder(twin, rule=rule, drafter=Clairvoyant(free), budget=99).decode(sample)
    assert drafted.trajectory.commits == free.trajectory.commits
    # two forwards a block: its opening, and one that walks through everything drafted
    blocks = len({c.position // L for c in free.trajectory.commits})
    assert drafted.trajectory.cost.nfe <= 2 * blocks
    assert drafted.trajectory.cost.accepted > 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_learned_drafter_leaves_the_trajectory_alone(
    twin: PagedTarget, temperature: float
) -> None:
    rule = Rule(temperature=temperature, top_p=0.9 if temperature else 1.0)
    shape = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
    drafter = SpotDrafter(OrderModel(shape).eval(), rule=rule, mask_id=MASK_ID)
    sample = _sample(11, max_tokens=20)
    free = ReferenceDecoder(twin, rule=rule).decode(sample)
    drafted = ReferenceDecoder(twin, rule=rule, drafter=drafter, budget=8).decode(sample)
    assert drafted.trajectory.cost.drafted > 0
    assert drafted.trajectory.commits == free.trajectory.commits


def test_a_stop_id_ends_the_sample_and_is_not_output(twin: PagedTarget) -> None:
    free = ReferenceDecoder(twin, rule=Rule()).decode(_sample(9, max_tokens=24, stops=frozenset()))
    chosen = free.token_ids[10]
    first = free.token_ids.index(chosen)
    decoded = ReferenceDecoder(twin, rule=Rule()).decode(
        _sample(9, max_tokens=24, stops=frozenset({chosen}))
    )
    assert decoded.finish_reason == "stop"
    assert decoded.token_ids == free.token_ids[:first]
    # the trajectory up to the stop is that of the sample without stop ids
    num = decoded.trajectory.transitions
    assert decoded.trajectory.commits == free.trajectory.commits[:num]


def test_a_larger_budget_only_adds_tokens(twin: PagedTarget) -> None:
    short = ReferenceDecoder(twin, rule=Rule()).decode(_sample(9, max_tokens=6, stops=frozenset()))
    long = ReferenceDecoder(twin, rule=Rule()).decode(_sample(9, max_tokens=19, stops=frozenset()))
    assert (len(short.token_ids), short.finish_reason) == (6, "length")
    assert long.token_ids[:6] == short.token_ids


def test_samples_of_one_prompt_differ_at_temperature_one(twin: PagedTarget) -> None:
    decoder = ReferenceDecoder(twin, rule=Rule(temperature=1.5))
    outputs = {decoder.decode(_sample(9, key=key)).token_ids for key in range(4)}
    assert len(outputs) > 1
    assert decoder.decode(_sample(9, key=2)).token_ids in outputs


def test_ids_outside_the_tokenizer_and_the_mask_are_never_output(twin: PagedTarget) -> None:
    decoder = ReferenceDecoder(twin, rule=Rule(temperature=2.5))
    for key in range(6):
        commits = decoder.decode(_sample(9, key=key, max_tokens=20)).trajectory.commits
        assert all(c.token < MASK_ID for c in commits)
