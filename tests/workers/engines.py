"""Engines on a random target, requests of every edge length, and the reference decoder."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.order_model import OrderModel
from spot.drafters.spot import SpotDrafter
from spot.limits import Limits
from spot.targets.paged import PagedTarget
from spot.trajectory import Decoded
from spot.transition import Rule
from tests.twins import BLOCK_LENGTH, MASK_ID, PAD_ID, STOP_ID, write_sdar_twin
from workers.budget import BudgetPolicy, FixedBudget
from workers.engine import Engine, EngineSettings
from workers.rounds import FullDrafts
from workers.samples import SampleRequest, SampleResult

L = BLOCK_LENGTH
LENGTHS = (1, L - 1, L, L + 1, 3 * L + 2)
GREEDY, SAMPLED = Rule(), Rule(temperature=1.0, top_p=0.9)
THRESHOLD = Rule(name="threshold", tau=0.05, temperature=1.0)


def make_target(folder: Path) -> PagedTarget:
    """A random target of the SDAR layout, on one thread."""
    torch.set_num_threads(1)
    return PagedTarget.load(write_sdar_twin(folder))


def limits_of(request: SampleRequest) -> Limits:
    return Limits(
        prompt_tokens=len(request.prompt_ids),
        max_tokens=request.max_tokens,
        stop_ids=frozenset({STOP_ID, PAD_ID}),
    )


def make_requests(*, samples: int = 1, max_tokens: int = 14) -> list[SampleRequest]:
    rng = np.random.default_rng(5)
    prompts = [tuple(int(i) for i in rng.integers(0, 256, n)) for n in LENGTHS]
    return [
        SampleRequest(
            shard=row % 2,
            row=row,
            sample=sample,
            prompt_ids=prompt,
            key=2**63 * (row % 2) + 100 * row + sample,  # keys have 64 bits
            max_tokens=max_tokens,
        )
        for row, prompt in enumerate(prompts)
        for sample in range(samples)
    ]


def drafter_of(rule: Rule) -> SpotDrafter:
    torch.manual_seed(0)
    shape = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
    return SpotDrafter(OrderModel(shape).eval(), rule=rule, mask_id=MASK_ID)


def endless_limits(request: SampleRequest) -> Limits:
    return replace(limits_of(request), stop_ids=frozenset())


def make_engine(
    target: PagedTarget,
    *,
    rule: Rule = GREEDY,
    batch: int = 3,
    num_pages: int = 80,
    budget: BudgetPolicy | None = None,
    full_drafts: FullDrafts = "look_through",
    fused_store: bool = True,
    padded: bool = False,
) -> Engine:
    settings = EngineSettings(
        rule=rule,
        batch=batch,
        num_pages=num_pages,
        traced=True,
        full_drafts=full_drafts,
        fused_store=fused_store,
        padded=padded,
    )
    return Engine(
        target,
        settings=settings,
        limits=limits_of,
        drafter=None if budget is None else drafter_of(rule),
        budget=budget or FixedBudget(0),
    )


def finish(engine: Engine) -> dict[tuple[int, int], SampleResult]:
    """Run to the end, checking every invariant after each round."""
    results = []
    while engine.has_work():
        results += engine.step()
        engine.check()
    return {(r.request.row, r.request.sample): r for r in results}


def decode(engine: Engine, requests: list[SampleRequest]) -> dict[tuple[int, int], SampleResult]:
    for request in requests:
        engine.add(request)
    return finish(engine)


def reference(target: PagedTarget, request: SampleRequest, rule: Rule) -> Decoded:
    sample = Sample(prompt_ids=request.prompt_ids, key=request.key, limits=limits_of(request))
    return ReferenceDecoder(target, rule=rule).decode(sample)


def assert_equal(result: SampleResult, decoded: Decoded) -> None:
    commits = decoded.trajectory.commits
    assert result.trace is not None
    assert result.token_ids == decoded.token_ids
    assert result.finish_reason == decoded.finish_reason
    assert result.trace.positions == tuple(c.position for c in commits)
    assert result.trace.tokens == tuple(c.token for c in commits)
    assert result.trace.steps == tuple(decoded.trajectory.steps)
    assert result.trace.confidences == tuple(c.confidence for c in commits)
    assert result.trace.log_probabilities == tuple(c.log_probability for c in commits)
