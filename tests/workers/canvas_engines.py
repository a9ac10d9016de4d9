"""Engines of bidirectional targets, requests of every edge length, and the reference decoder."""

import time
from collections.abc import Callable
from dataclasses import replace

from spot.canvas_decoder import CanvasDecoder
from spot.drafters.base import Drafter
from spot.limits import Limits
from spot.rounds import Sample
from spot.targets.base import (
    CacheContext,
    CanvasTarget,
)
from spot.trajectory import Decoded
from spot.transition import Rule
from workers.budget import BudgetPolicy, FixedBudget
from workers.canvas_engine import CanvasEngine, CanvasSettings
from workers.samples import SampleRequest, SampleResult

CONTEXTS: tuple[CacheContext, ...] = ("prefix", "prefix+suffix")
RULES = (
    Rule(),
    Rule(temperature=1.0),
    Rule(name="threshold", tau=0.8, temperature=1.0),
    Rule(name="low_confidence_dynamic", tau=0.8, temperature=1.0),
)
STOP = 3


def limits_of(request: SampleRequest) -> Limits:
    return Limits(
        prompt_tokens=len(request.prompt_ids),
        max_tokens=request.max_tokens,
        stop_ids=frozenset({STOP}),
    )


def endless_limits(request: SampleRequest) -> Limits:
    return replace(limits_of(request), stop_ids=frozenset())


def make_requests(length: int, *, num_ids: int) -> list[SampleRequest]:
    """Prompts of every edge length, with budgets of their own, on two shards."""
    lengths = (1, length - 1, length, length + 1, 2 * length - 1)
    return [
        SampleRequest(
            shard=row % 2,
            row=row,
            sample=0,
            prompt_ids=tuple((row + 5 * p) % num_ids for p in range(num_prompt)),
            key=2**63 * (row % 2) + 100 + row,
            max_tokens=length + 1 + row,
        )
        for row, num_prompt in enumerate(lengths)
    ]


def make_engine(
    target: CanvasTarget,
    *,
    rule: Rule,
    context: CacheContext = "prefix",
    batch: int = 3,
    drafter: Drafter | None = None,
    budget: BudgetPolicy | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CanvasEngine:
    settings = CanvasSettings(rule=rule, context=context, batch=batch, traced=True)
    return CanvasEngine(
        target,
        settings=settings,
        limits=limits_of,
        drafter=drafter,
        budget=budget or FixedBudget(5),
        clock=clock,
    )


def finish(engine: CanvasEngine, requests: list[SampleRequest]) -> dict[int, SampleResult]:
    for request in requests:
        engine.add(request)
    results = []
    while engine.has_work():
        results += engine.step()
    return {r.request.row: r for r in results}


def reference(
    target: CanvasTarget, request: SampleRequest, *, rule: Rule, context: CacheContext
) -> Decoded:
    sample = Sample(prompt_ids=request.prompt_ids, key=request.key, limits=limits_of(request))
    return CanvasDecoder(target, rule=rule, context=context).decode(sample)


def assert_equal(result: SampleResult, decoded: Decoded) -> None:
    commits, trace = decoded.trajectory.commits, result.trace
    assert trace is not None
    assert (result.token_ids, result.finish_reason) == decoded[:2]
    assert trace.positions == tuple(c.position for c in commits)
    assert trace.tokens == tuple(c.token for c in commits)
    assert trace.steps == tuple(decoded.trajectory.steps)
    assert trace.confidences == tuple(c.confidence for c in commits)
