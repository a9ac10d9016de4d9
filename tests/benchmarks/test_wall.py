from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from benchmarks import wall
from benchmarks.settings import DRAFT_FREE, STRICT, Setting
from benchmarks.wall import TimedDrafter, Wall, run, timed, with_walls
from benchmarks.workload import Workload, load
from spot.drafters.base import DraftRequest, Drafts
from tests.benchmarks.builders import row

SPOT = Setting(protocol="early_stop", rule=STRICT, method="spot", budget=8, samples=1, timed=True)
CHAIN = replace(SPOT, method="chain")


class Silent:
    """Proposes nothing."""

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        return []


def test_the_drafters_seconds_add_up_over_its_calls() -> None:
    drafter = TimedDrafter(Silent(), clock=iter([1.0, 3.0, 10.0, 15.0]).__next__)
    drafter.propose([])
    drafter.propose([])
    assert drafter.seconds == 7.0


def test_a_ratio_above_one_is_faster() -> None:
    done = timed(row("spot", 8, [4]), Wall(5.0, 1.0), draft_free=10.0)
    assert done.wall_ratio == 2.0
    assert done.drafter_seconds_share == pytest.approx(0.2)


def test_draft_free_seconds_are_the_mean_of_before_and_after(
    monkeypatch: pytest.MonkeyPatch, workload: Workload
) -> None:
    methods: list[str] = []
    seconds: Iterator[float] = iter([99.0, 10.0, 4.0, 14.0, 5.0, 16.0])

    def scripted(setting: Setting, *_: Any, **__: Any) -> Wall:
        methods.append(setting.method)
        return Wall(next(seconds), 1.0)

    monkeypatch.setattr(wall, "load", lambda _: None)
    monkeypatch.setattr(wall, "run", scripted)
    untimed = replace(SPOT, budget=12, timed=False)
    settings = [SPOT, untimed, CHAIN]
    rows = [row("spot", 8, [4]), row("spot", 12, [4]), row("chain", 8, [4])]
    done = with_walls(settings, rows, workload, progress=lambda _: None)
    assert [r.wall_ratio for r in done] == [3.0, None, 3.0]
    assert methods == [DRAFT_FREE, DRAFT_FREE, "spot", DRAFT_FREE, "chain", DRAFT_FREE]


@pytest.mark.models
def test_a_run_times_all_samples_and_the_drafter_inside(workload: Workload) -> None:
    loaded, ticks = load(workload), count()
    spot = run(replace(SPOT, budget=2), loaded, workload, clock=lambda: float(next(ticks)))
    assert spot.drafter_seconds > 0.0
    assert spot.seconds == 2 * spot.drafter_seconds + 1  # the clock ticks once for each question
    free = replace(SPOT, method=DRAFT_FREE, budget=0)
    assert run(free, loaded, workload, clock=lambda: float(next(ticks))) == Wall(1.0, 0.0)
