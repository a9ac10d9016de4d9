"""Bidirectional targets that run out of memory: forwards are halved, and outputs stay."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from spot.drafters.stale_rule import StaleRuleDrafter
from spot.targets.base import (
    CacheContext,
    Canvas,
    CanvasUnit,
    Opened,
)
from spot.transition import Rule
from tests.spot.toy import LENGTH, MASK_ID, mixed_table
from tests.spot.toy_canvas import ToyCanvas
from tests.workers.canvas_engines import assert_equal, finish, make_engine, make_requests, reference
from workers.canvas_forwarding import in_forwards


class Small(ToyCanvas):
    """Takes no more than two states, or 40 positions of canvases, at once."""

    def open(self, canvases: list[Canvas], *, context: CacheContext) -> list[Opened]:
        if sum(len(canvas.tokens) for canvas in canvases) > 40:
            raise MemoryError
        return super().open(canvases, context=context)

    def hidden(self, units: list[CanvasUnit]) -> torch.Tensor:
        if len(units) > 2:
            raise MemoryError
        return super().hidden(units)


def test_out_of_memory_halves_a_forward_and_changes_nothing() -> None:
    rule, requests = Rule(temperature=1.0), make_requests(LENGTH, num_ids=3)
    target = Small(mixed_table)
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    engine = make_engine(target, rule=rule, batch=5, drafter=drafter)
    results = finish(engine, requests)
    assert 2 < engine.counters()["out_of_memory"] < 8  # it is remembered
    assert max(map(len, target.opening_forwards)) == 3  # of five
    for request in requests:
        decoded = reference(ToyCanvas(mixed_table), request, rule=rule, context="prefix")
        assert_equal(results[request.row], decoded)


def test_a_canvas_that_does_not_fit_alone_is_raised() -> None:
    engine = make_engine(Small(mixed_table), rule=Rule())
    engine.add(replace(make_requests(LENGTH, num_ids=3)[0], max_tokens=50))
    with pytest.raises(MemoryError):
        engine.step()


def test_openings_are_cut_up_by_positions_and_a_long_canvas_goes_alone() -> None:
    canvases = [Canvas(np.zeros(num, np.int64), 0) for num in (5, 5, 30, 2, 9)]
    parts = in_forwards(canvases, most=12)
    assert [[len(c.tokens) for c in part] for part in parts] == [[5, 5], [30], [2, 9]]
    assert in_forwards([], most=12) == []


def test_what_is_not_for_want_of_memory_is_raised() -> None:
    class Broken(ToyCanvas):
        def hidden(self, units: list[CanvasUnit]) -> torch.Tensor:
            raise RuntimeError("broken")

    engine = make_engine(Broken(mixed_table), rule=Rule())
    engine.add(make_requests(LENGTH, num_ids=3)[0])
    engine.step()
    with pytest.raises(RuntimeError, match="broken"):
        engine.step()
