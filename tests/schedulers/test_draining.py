"""Nodes that will go: notices that come early, late, never, twice, or are withdrawn."""

import pytest

from schedulers.draining import can_finish
from schedulers.events import NodeDraining, NodeRestored
from schedulers.instructions import EndWorker
from tests.schedulers.conftest import Make
from tests.schedulers.stories import (
    assign,
    begun,
    committed,
    heard,
    joined,
    lost,
    placed,
    progress,
    release,
    start,
    tick,
    w,
)

LEAVE = EndWorker(
    worker=w(1),
    cause="infrastructure",
    message="its node drains, and nothing that it holds would end in time",
)


def notice(*, deadline: float | None = None, now: float = 0.0) -> NodeDraining:
    return NodeDraining(node="node", deadline=deadline, now=now)


@pytest.mark.parametrize(
    ("left_s", "needed_s", "expected"),
    [
        (None, None, True),
        (None, 1e9, True),
        (10.0, 0.0, False),
        (-5.0, None, False),
        (30.0, None, True),
        (30.0, 20.0, True),
        (30.0, 20.1, False),
    ],
)
def test_the_table(left_s: float | None, needed_s: float | None, expected: bool) -> None:
    assert can_finish(left_s=left_s, needed_s=needed_s, margin_s=10.0) == expected


def test_a_worker_on_a_draining_node_finishes_what_it_has_and_gets_no_more(make: Make) -> None:
    scheduler = begun(make(3.0, 2.0, 1.0))
    assert scheduler.handle(notice()) == start(2)
    assert scheduler.handle(committed(1, 0)) == []
    assert scheduler.handle(committed(1, 1)) == []
    assert scheduler.handle(tick(1)) == [LEAVE]
    assert scheduler.handle(lost(1, cause="infrastructure")) == []
    assert scheduler.handle(joined(2)) == assign(2, 2)


def test_what_cannot_end_in_time_is_abandoned_at_once(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, drain_margin_s=10, lease_s=1e9, capacity=1))
    scheduler.handle(heard(1, progress(0, fraction=0.1), now=100))
    assert scheduler.handle(notice(deadline=400, now=100)) == [LEAVE, *start(2)]


def test_what_can_end_in_time_goes_on_until_it_cannot(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, drain_margin_s=10, lease_s=1e9))
    scheduler.handle(heard(1, progress(0, fraction=0.9), now=100))
    assert scheduler.handle(notice(deadline=200, now=100)) == []
    assert scheduler.handle(tick(150)) == []
    assert scheduler.handle(tick(190)) == [LEAVE]


def test_a_repeated_notice_asks_for_no_second_replacement(make: Make) -> None:
    scheduler = begun(make(3.0, 2.0, 1.0))
    assert scheduler.handle(notice()) == start(2)
    assert scheduler.handle(notice(deadline=1e6)) == []


def test_a_worker_whose_notice_was_withdrawn_works_on(make: Make) -> None:
    scheduler = begun(make(3.0, 2.0, 1.0))
    scheduler.handle(notice())
    assert scheduler.handle(NodeRestored(node="node", now=1)) == []
    assert scheduler.handle(committed(1, 0)) == []  # the last one is kept for the newcomer
    assert scheduler.handle(committed(1, 1)) == assign(1, 2)
    assert scheduler.handle(joined(2)) == [release(2)]


def test_a_withdrawn_notice_that_was_never_given_is_no_trouble(make: Make) -> None:
    assert begun(make(1.0)).handle(NodeRestored(node="elsewhere", now=1)) == []


def test_a_worker_that_dies_on_a_draining_node_is_nobodys_fault(make: Make) -> None:
    scheduler = begun(make(1.0, deaths_together=1, attempts=1))
    scheduler.handle(notice())
    assert scheduler.handle(lost(1)) == start(2)
    assert scheduler.state_of(0) == "pending"


def test_leaving_with_empty_hands_is_not_a_barren_loss(make: Make) -> None:
    scheduler = make(1.0, attempts=1)
    scheduler.handle(tick())
    scheduler.handle(placed(1, node="node"))
    scheduler.handle(notice())
    assert scheduler.handle(joined(1)) == []
    assert scheduler.handle(tick(1)) == [LEAVE]
    assert scheduler.handle(lost(1, cause="infrastructure")) == start(2)


def test_workers_on_other_nodes_are_left_alone(make: Make) -> None:
    scheduler = begun(make(3.0, 2.0, 1.0), node="elsewhere")
    assert scheduler.handle(notice(deadline=1)) == []
    assert scheduler.handle(committed(1, 0)) == assign(1, 2)
