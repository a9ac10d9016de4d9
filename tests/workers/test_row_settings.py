"""Rows with their own temperature: the batched engine against the reference decoder."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.order_model import OrderModel
from spot.drafters.spot import SpotDrafter
from spot.limits import Limits
from spot.targets.paged import PagedTarget
from spot.transition import Rule
from tests.twins import MASK_ID, PAD_ID, STOP_ID, write_sdar_twin
from workers.budget import FixedBudget
from workers.engine import Engine, EngineSettings
from workers.samples import SampleRequest
from workers.walking import rule_for

TEMPERATURES = (None, 0.0, 0.7, 1.5, 0.7)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> PagedTarget:
    torch.set_num_threads(1)
    return PagedTarget.load(write_sdar_twin(Path(tmp_path_factory.mktemp("twin"))))


def _limits(request: SampleRequest) -> Limits:
    return Limits(
        prompt_tokens=len(request.prompt_ids),
        max_tokens=request.max_tokens,
        stop_ids=frozenset({STOP_ID, PAD_ID}),
    )


def _requests() -> list[SampleRequest]:
    rng = np.random.default_rng(3)
    return [
        SampleRequest(
            shard=0,
            row=row,
            sample=0,
            prompt_ids=tuple(int(i) for i in rng.integers(0, 256, 5 + row)),
            key=17 * row + 1,
            max_tokens=10 + row,
            temperature=temperature,
        )
        for row, temperature in enumerate(TEMPERATURES)
    ]


@pytest.mark.parametrize(
    "rule", [Rule(), Rule(temperature=1.0, top_p=0.9)], ids=["greedy", "drawn"]
)
def test_each_row_is_decoded_at_its_own_temperature_whatever_shares_the_batch(
    target: PagedTarget, rule: Rule
) -> None:
    torch.manual_seed(0)
    shape = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
    drafter = SpotDrafter(OrderModel(shape).eval(), rule=rule, mask_id=MASK_ID)
    settings = EngineSettings(rule=rule, batch=5, num_pages=80, traced=True)
    engine = Engine(
        target, settings=settings, limits=_limits, drafter=drafter, budget=FixedBudget(6)
    )
    for request in _requests():
        engine.add(request)
    results = []
    while engine.has_work():
        results += engine.step()
    assert len(results) == len(TEMPERATURES)
    for result in results:
        request = result.request
        alone = ReferenceDecoder(target, rule=rule_for(rule, request))
        sample = Sample(prompt_ids=request.prompt_ids, key=request.key, limits=_limits(request))
        decoded = alone.decode(sample)
        assert (result.token_ids, result.transitions) == (
            decoded.token_ids,
            decoded.trajectory.transitions,
        )


def test_a_temperature_of_its_own_replaces_only_the_rules_temperature() -> None:
    rule = Rule(name="threshold", tau=0.5, temperature=1.0, top_k=3, top_p=0.5)
    request = _requests()[2]
    assert rule_for(rule, request) == replace(rule, temperature=0.7)
    assert rule_for(rule, replace(request, temperature=None)) is rule
