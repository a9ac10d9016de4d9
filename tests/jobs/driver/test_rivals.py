"""Another driver of the same job is noticed if it lives, and ended if that is wanted."""

import os
import socket
from collections.abc import Callable

import pytest

from jobs.driver.errors import RivalDriverError
from jobs.driver.rivals import WATCH_S, settle_rivals
from jobs.driver.tracker import Tracker
from manifests.control import requests_to
from manifests.journal import write_presence
from tests.manifests.builders import StoredJob

PARENT = os.getppid()  # lives as long as these tests


def say(
    job: StoredJob, *, host: str | None = None, pid: int, updated: str = "1", finished: bool = False
) -> None:
    tracker = Tracker(plan=job.plan, shards=job.plan.shards, epoch="other")
    presence = tracker.presence(num_workers=1, now=0.0, finished=finished)
    changes = {"host": host or socket.gethostname(), "pid": pid, "updated": updated}
    write_presence(job.store, presence.model_copy(update=changes))


def nothing_to_wait_for(pause_s: float) -> None:
    raise AssertionError("nothing was to be waited for")


def while_waiting(act: Callable[[], None]) -> Callable[[float], None]:
    def sleep(pause_s: float) -> None:
        assert pause_s == WATCH_S
        act()

    return sleep


def test_without_another_driver_nothing_is_waited_for(job: StoredJob) -> None:
    settle_rivals(job.store, take_over=False, sleep=nothing_to_wait_for)


def test_a_driver_that_said_goodbye_is_none(job: StoredJob) -> None:
    say(job, pid=PARENT, finished=True)
    settle_rivals(job.store, take_over=False, sleep=nothing_to_wait_for)


def test_a_driver_of_this_host_whose_process_is_gone_is_none(job: StoredJob) -> None:
    say(job, pid=2**22 + 1)
    settle_rivals(job.store, take_over=False, sleep=nothing_to_wait_for)


def test_a_driver_of_this_very_process_is_none(job: StoredJob) -> None:
    say(job, pid=os.getpid())
    settle_rivals(job.store, take_over=False, sleep=nothing_to_wait_for)


@pytest.mark.parametrize("host", [None, "elsewhere"])
def test_a_driver_whose_presence_does_not_change_is_none(job: StoredJob, host: str | None) -> None:
    say(job, host=host, pid=PARENT)
    settle_rivals(job.store, take_over=False, sleep=while_waiting(lambda: None))


@pytest.mark.parametrize("host", [None, "elsewhere"])
def test_a_driver_whose_presence_changes_is_named(job: StoredJob, host: str | None) -> None:
    say(job, host=host, pid=PARENT)
    goes_on = while_waiting(lambda: say(job, host=host, pid=PARENT, updated="2"))
    with pytest.raises(RivalDriverError, match=rf"driver other \(process {PARENT} on .* already"):
        settle_rivals(job.store, take_over=False, sleep=goes_on)


def test_a_driver_that_leaves_meanwhile_is_none(job: StoredJob) -> None:
    say(job, pid=PARENT)
    leaves = while_waiting(lambda: say(job, pid=PARENT, updated="2", finished=True))
    settle_rivals(job.store, take_over=False, sleep=leaves)


def test_taking_over_cancels_the_other_driver(job: StoredJob) -> None:
    say(job, pid=PARENT)
    goes_on = while_waiting(lambda: say(job, pid=PARENT, updated="2"))
    settle_rivals(job.store, take_over=True, sleep=goes_on)
    assert requests_to(job.store, "other") == {"cancel"}
