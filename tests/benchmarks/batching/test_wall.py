"""Wall-clock rows: turns, slices, medians, and policies that are too slow for a second turn."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.batching.cells import Cell
from benchmarks.batching.runs import Run
from benchmarks.batching.wall import SLICE_S, WallClock
from benchmarks.workload import Workload, load

CELL = Cell(rule="strict", temperature=0.0, concurrency=1)
COUNTERS = dict.fromkeys(
    ("target_us", "drafter_us", "host_us", "positions", "page_hits", "page_misses"), 1
)


class ScriptedDecoding:
    """A run that takes so long, and tells whenever it goes on."""

    def __init__(self, seconds: float, *, goes_on: Callable[[], None]) -> None:
        self._left, self._goes_on, self.seconds = seconds, goes_on, 0.0

    @property
    def has_work(self) -> bool:
        return self._left > 0.0

    def advance(self, limit_s: float) -> None:
        self._goes_on()
        step = min(self._left, limit_s)
        self.seconds, self._left = self.seconds + step, self._left - step

    def run(self) -> Run:
        assert not self.has_work
        return Run(100, self.seconds, COUNTERS, [])


class Scripted:
    """A bench whose runs take what each policy's script says."""

    def __init__(self, seconds: dict[str, list[float]]) -> None:
        self.seconds, self.taken = seconds, Counter[str]()
        self.order: list[str] = []
        self.slices: list[str] = []
        self.clock: Callable[[], float] = lambda: 0.0
        self.target = load(Workload(num_prompts=2, max_tokens=32)).target

    def run(self, _: Cell, *, drafter: str, budget: str, num_samples: int) -> Run:
        return Run(1, 1.0, COUNTERS, [])  # warming up

    def begin(self, _: Cell, *, drafter: str, budget: str) -> ScriptedDecoding:
        seconds = self.seconds[drafter][self.taken[drafter]]
        self.taken[drafter] += 1
        self.order.append(drafter)
        return ScriptedDecoding(seconds, goes_on=lambda: self.slices.append(drafter))


def _rows(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, list[float]]) -> Any:
    bench: Any = Scripted(seconds)
    monkeypatch.setattr(WallClock, "_player", lambda _, policy, __: (policy, policy))
    clock = WallClock(
        bench,
        Workload(num_prompts=2),
        repeats=3,
        progress=lambda _: None,
        policies=("draft_free", "d8", "auto"),
    )
    return clock.rows(CELL), bench


@pytest.mark.models
def test_a_ratio_is_the_median_against_the_draft_free_run_of_the_same_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = {"draft_free": [1.0, 2.0, 4.0], "d8": [1.0, 4.0, 4.0], "auto": [0.5, 2.0, 1.0]}
    (free, d8, auto), _ = _rows(monkeypatch, seconds)
    assert free.ratio_to_draft_free == 1.0
    assert d8.ratio_to_draft_free == pytest.approx(1.0)  # of 1, 0.5 and 1
    assert auto.ratio_to_draft_free == pytest.approx(2.0)  # of 2, 1 and 4
    assert auto.tokens_per_s == pytest.approx(100.0)


@pytest.mark.models
def test_a_fixed_policy_under_half_speed_has_no_second_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = {"draft_free": [1.0] * 3, "d8": [3.0], "auto": [3.0] * 3}
    _, bench = _rows(monkeypatch, seconds)
    assert bench.taken == {"draft_free": 3, "d8": 1, "auto": 3}


@pytest.mark.models
def test_every_turn_has_all_policies_in_an_order_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, bench = _rows(monkeypatch, {policy: [1.0] * 3 for policy in ("draft_free", "d8", "auto")})
    turns = [tuple(bench.order[start : start + 3]) for start in (0, 3, 6)]
    assert all(sorted(turn) == ["auto", "d8", "draft_free"] for turn in turns)
    assert len(set(turns)) > 1


@pytest.mark.models
def test_draft_free_and_automatic_runs_go_on_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {
        "draft_free": [2.5 * SLICE_S] * 3,
        "d8": [2 * SLICE_S] * 3,
        "auto": [2 * SLICE_S] * 3,
    }
    _, bench = _rows(monkeypatch, seconds)
    turn = bench.slices[:7]
    assert "d8 d8" in " ".join(turn)
    rivals = [policy for policy in turn if policy != "d8"]
    assert set(rivals[:2]) == set(rivals[2:4]) == {"draft_free", "auto"}
    assert rivals[4:] == ["draft_free"]
