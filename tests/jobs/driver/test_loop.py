"""The loop over a scripted pool: storage decides, trouble is passed on, stops are obeyed."""

from collections import Counter
from itertools import count
from typing import Any

import pytest

from jobs.driver.ledger import Ledger
from jobs.driver.loop import Loop
from jobs.driver.notices import Gone, Heard, Joined, Notice, Placed, Refused, Reported
from jobs.driver.tracker import Tracker
from manifests.control import ask_drivers
from manifests.journal import latest_presence, read_failures, write_announcement
from manifests.open_revision import OpenRevision
from manifests.protocol import read_records, read_seal
from manifests.records import Announcement, Presence
from schedulers.events import ShardCommitted, ShardLost
from schedulers.instructions import Cancelled, Drained
from schedulers.limits import Limits
from schedulers.machine import Scheduler
from tests.jobs.driver.fakes import (
    NODE,
    FakeLooks,
    FakeNodes,
    FakePool,
    FakeSink,
    FakeStops,
    commit,
    join,
)
from tests.manifests.builders import CREATED, StoredJob
from workers.actor import Heartbeat
from workers.attempt import Attempt, ShardOutcome
from workers.stream import Totals

OTHER_ATTEMPT = "00000000000000bb"


def report(worker: str, shard: int, *, attempt: str) -> Reported:
    return Reported(
        worker=worker, outcome=ShardOutcome(shard=shard, attempt=attempt, status="committed")
    )


def failure(worker: str, shard: int, *, is_worker_usable: bool = True) -> Reported:
    outcome = ShardOutcome(
        shard=shard,
        attempt=OTHER_ATTEMPT,
        status="failed",
        error="ValueError: no",
        is_worker_usable=is_worker_usable,
    )
    return Reported(worker=worker, outcome=outcome)


def make_loop(
    job: StoredJob,
    pool: FakePool,
    *,
    num_workers: int = 1,
    refuse_at_once: bool = True,
    stops: FakeStops | None = None,
    nodes: FakeNodes | None = None,
    **limits: Any,
) -> Loop:
    revision = OpenRevision(store=job.store, plan=job.plan)
    before = revision.list_committed()
    tracker = Tracker(plan=job.plan, shards=job.plan.shards, before=before)
    ledger = Ledger(revision=revision, epoch=tracker.epoch)
    return Loop(
        ledger=ledger,
        scheduler=Scheduler(
            [(shard.shard, shard.expected_cost) for shard in job.plan.shards],
            committed=before,
            num_workers=num_workers,
            deaths=ledger.deaths(),
            limits=Limits(**({"attempts": 2, "lease_s": 1e9, "straggler_gain_s": 1e9} | limits)),
        ),
        pool=pool,
        nodes=nodes or FakeNodes(),
        looks=FakeLooks(),
        tracker=tracker,
        progress=FakeSink(),
        stop_requests=stops or FakeStops(),
        clock=(step / 20.0 for step in count()).__next__,
        refuse_at_once=refuse_at_once,
    )


def messages(loop: Loop) -> str:
    assert isinstance(loop.progress, FakeSink)
    return "\n".join(loop.progress.messages)


def test_every_shard_is_assigned_once_and_the_job_is_sealed(job: StoredJob) -> None:
    pool = FakePool(on_start=join, on_assign=commit(job))
    loop = make_loop(job, pool, num_workers=2)
    loop.run()
    assert sorted(shard for _, shard in pool.assigned) == [0, 1, 2, 3]
    assert loop.ending.seal is not None
    assert read_seal(job.store) == loop.ending.seal


def test_committed_shards_are_not_assigned_again(job: StoredJob) -> None:
    job.commit(0)
    job.commit(2)
    pool = FakePool(on_start=join, on_assign=commit(job))
    make_loop(job, pool).run()
    assert sorted(shard for _, shard in pool.assigned) == [1, 3]


def test_a_report_without_a_record_is_not_believed(job: StoredJob) -> None:
    lied: Counter[int] = Counter()

    def react(worker: str, shard: int) -> list[Notice]:
        lied[shard] += 1
        if lied[shard] == 1:
            return [report(worker, shard, attempt=OTHER_ATTEMPT)]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert Counter(shard for _, shard in pool.assigned) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert loop.ending.seal is not None


def test_the_record_counts_whoever_wrote_it(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        job.commit(shard)
        outcome = ShardOutcome(shard=shard, attempt=OTHER_ATTEMPT, status="lost")
        return [Reported(worker=worker, outcome=outcome)]

    loop = make_loop(job, FakePool(on_start=join, on_assign=react))
    loop.run()
    assert loop.ending.seal is not None
    assert len(loop.tracker.committed_shards) == 4
    heard = [type(step.event) for step in loop.scheduler.history]
    assert (heard.count(ShardLost), heard.count(ShardCommitted)) == (4, 0)


def test_a_dead_worker_is_replaced_and_its_shards_are_done_by_another(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "worker-0001":
            return [Gone(worker=worker, cause="death", message="killed", node=NODE)]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert pool.started == ["worker-0001", "worker-0002"]
    assert loop.ending.seal is not None
    assert "worker-0001 is gone (killed)" in messages(loop)


def test_a_death_leaves_a_failure_with_the_attempt_that_was_seen(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "worker-0001":
            seen = Attempt(shard=shard, attempt=OTHER_ATTEMPT, phase="decoding")
            beat = Heartbeat(running=(seen,), num_steps=0, totals=Totals())
            gone = Gone(worker=worker, cause="death", message="killed", node=NODE)
            return [Heard(worker=worker, heartbeat=beat), gone]
        return commit(job)(worker, shard)

    make_loop(job, FakePool(on_start=join, on_assign=react)).run()
    failures = read_failures(job.store)
    assert OTHER_ATTEMPT in {failure.attempt for failure in failures}
    assert {(f.kind, f.message, f.worker) for f in failures} == {("rows", "killed", "worker-0001")}


def test_a_record_written_with_the_last_breath_counts(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        job.commit(shard)
        return [Gone(worker=worker, cause="death", message="killed", node=NODE)]

    # Every worker dies; if storage were looked at later, the only attempt would be used up.
    loop = make_loop(job, FakePool(on_start=join, on_assign=react), attempts=1)
    loop.run()
    assert loop.ending.seal is not None
    assert loop.ending.given_up == {}


def test_a_failing_shard_is_given_up_after_its_attempts_and_the_rest_goes_on(
    job: StoredJob,
) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        return [failure(worker, shard)] if shard == 1 else commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert loop.ending.seal is None
    assert loop.ending.given_up == {1: "ValueError: no"}
    assert sorted(read_records(job.store, job.plan)) == [0, 2, 3]
    assert Counter(shard for _, shard in pool.assigned)[1] == 2


def test_a_worker_with_a_broken_engine_is_ended_and_replaced(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "worker-0001":
            return [failure(worker, shard, is_worker_usable=False)]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert pool.ended[0] == "worker-0001"
    assert loop.ending.seal is not None


def test_a_refused_worker_ends_a_local_run_in_one_sentence(job: StoredJob) -> None:
    pool = FakePool(
        on_start=lambda worker: [Refused(worker=worker, sentence="other torch")],
        on_assign=commit(job),
    )
    loop = make_loop(job, pool)
    loop.run()
    assert (loop.ending.refusal, loop.ending.num_joined) == ("other torch", 0)
    assert pool.started == ["worker-0001"]


def test_a_cluster_goes_on_with_the_workers_that_are_not_refused(job: StoredJob) -> None:
    def start(worker: str) -> list[Notice]:
        return (
            [Refused(worker=worker, sentence="other torch")]
            if worker == "worker-0001"
            else join(worker)
        )

    pool = FakePool(on_start=start, on_assign=commit(job))
    loop = make_loop(job, pool, num_workers=2, refuse_at_once=False)
    loop.run()
    assert loop.ending.seal is not None
    assert "other torch" in messages(loop)


def test_a_cluster_that_refuses_every_worker_ends_with_the_reason(job: StoredJob) -> None:
    pool = FakePool(
        on_start=lambda worker: [Refused(worker=worker, sentence="other torch")],
        on_assign=commit(job),
    )
    loop = make_loop(job, pool, num_workers=2, refuse_at_once=False)
    loop.run()
    assert (loop.ending.refusal, loop.ending.num_joined) == ("other torch", 0)
    assert len(pool.started) == 5


def stopping_at(job: StoredJob, stops: FakeStops, *, stop: str) -> FakePool:
    """A pool under which somebody asks for a stop when two shards are leased."""

    def react(worker: str, shard: int) -> list[Notice]:
        if len(pool.assigned) == 2:
            setattr(stops, stop, True)
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    return pool


def test_a_drain_finishes_what_runs_and_begins_nothing(job: StoredJob) -> None:
    stops = FakeStops()
    pool = stopping_at(job, stops, stop="wants_drain")
    loop = make_loop(job, pool, stops=stops)
    loop.run()
    assert loop.ending.last == Drained()
    assert len(pool.assigned) == 2
    assert sorted(loop.tracker.committed_shards) == sorted(shard for _, shard in pool.assigned)
    assert "draining: 2 shards" in messages(loop)


def test_a_drain_ends_at_its_deadline_whatever_still_runs(job: StoredJob) -> None:
    stops = FakeStops()

    def react(worker: str, shard: int) -> list[Notice]:
        stops.wants_drain = True
        return []

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool, stops=stops, drain_s=30.0)
    loop.run()
    assert loop.ending.last == Drained()
    assert not loop.tracker.committed_shards


def test_a_cancel_ends_the_run_at_once(job: StoredJob) -> None:
    stops = FakeStops()
    loop = make_loop(job, stopping_at(job, stops, stop="wants_cancel"), stops=stops)
    loop.run()
    assert loop.ending.last == Cancelled()
    assert not loop.tracker.committed_shards


@pytest.mark.parametrize(("request_", "end"), [("drain", Drained()), ("cancel", Cancelled())])
def test_what_is_asked_through_storage_is_done(
    job: StoredJob, request_: Any, end: Drained | Cancelled
) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        loop.ledger.store_presence(loop.tracker.presence(num_workers=1, now=0.0))
        assert ask_drivers(job.store, request_) == [loop.ledger.epoch]
        return []

    loop = make_loop(job, FakePool(on_start=join, on_assign=react), drain_s=30.0)
    loop.run()
    assert loop.ending.last == end


def test_a_request_to_another_driver_is_not_obeyed(job: StoredJob) -> None:
    other = Ledger(revision=OpenRevision(store=job.store, plan=job.plan), epoch="other")
    other.store_presence(replace_epoch(job, "other"))
    assert ask_drivers(job.store, "cancel") == ["other"]
    loop = make_loop(job, FakePool(on_start=join, on_assign=commit(job)))
    loop.run()
    assert loop.ending.seal is not None


def replace_epoch(job: StoredJob, epoch: str) -> Presence:
    tracker = Tracker(plan=job.plan, shards=job.plan.shards, epoch=epoch)
    return tracker.presence(num_workers=0, now=0.0)


def test_a_death_on_a_dead_or_draining_node_is_not_held_against_rows(job: StoredJob) -> None:
    nodes = FakeNodes(dead={NODE})

    def react(worker: str, shard: int) -> list[Notice]:
        if len(pool.started) == 1:
            return [Gone(worker=worker, cause="death", message="killed", node=NODE)]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    make_loop(job, pool, nodes=nodes).run()
    failures = read_failures(job.store)
    assert {(failure.kind, failure.is_death) for failure in failures} == {("infrastructure", False)}


def test_a_draining_node_gets_no_more_shards(job: StoredJob) -> None:
    nodes = FakeNodes(drained={NODE: None})

    def start(worker: str) -> list[Notice]:
        where = NODE if worker == "worker-0001" else "elsewhere"
        return [Placed(worker=worker, node=where), Joined(worker=worker)]

    def react(worker: str, shard: int) -> list[Notice]:
        return [] if worker == "worker-0001" else commit(job)(worker, shard)

    pool = FakePool(on_start=start, on_assign=react)
    loop = make_loop(job, pool, nodes=nodes, publishing_s=50.0)
    loop.run()
    assert loop.ending.seal is not None
    assert pool.killed == ["worker-0001"]


def test_a_silent_worker_is_killed_and_its_shards_are_done_by_another(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        return [] if worker == "worker-0001" else commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool, lease_s=20.0)
    loop.run()
    assert "worker-0001" in pool.killed
    assert loop.ending.seal is not None
    assert "did not answer within 20 s" in messages(loop)


def test_a_row_that_kills_its_worker_twice_when_it_is_alone_is_convicted(job: StoredJob) -> None:
    """The shard of row 1 kills every worker until that row is left out."""

    def react(worker: str, shard: int) -> list[Notice]:
        order = pool.orders[-1]
        if shard != 2 or order.convicted == (1,):
            return commit(job)(worker, shard)
        if order.row_by_row:
            write_announcement(job.store, announcement(loop, worker, row=0, second="1"))
            write_announcement(job.store, announcement(loop, worker, row=1, second="2"))
        return [Gone(worker=worker, cause="death", message="killed", node=NODE)]

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool, attempts=1)
    loop.run()
    assert loop.ending.seal is not None
    assert [order.convicted for order in pool.orders if order.row_by_row and order.shard == 2] == [
        (),
        (),
        (1,),
    ]
    assert "row 1 of shard 2 ended its workers" in messages(loop)
    rows = [(f.is_death, f.row) for f in read_failures(job.store) if f.shard == 2]
    assert sorted(rows, key=str) == [(True, 1), (True, 1), (True, None), (True, None)]


def announcement(loop: Loop, worker: str, *, row: int, second: str) -> Announcement:
    return Announcement(
        shard=2,
        attempt=f"{len(worker) + int(worker[-1]):016x}",
        row=row,
        epoch=loop.ledger.epoch,
        worker=f"{worker}@host",
        time=CREATED.replace("00+00", f"0{second}+00"),
    )


def test_a_new_driver_recalls_under_which_rows_workers_died(job: StoredJob) -> None:
    def die(worker: str, shard: int) -> list[Notice]:
        stops.wants_drain = True
        return [Gone(worker=worker, cause="death", message="killed", node=NODE)]

    for _ in range(2):
        stops = FakeStops()
        make_loop(job, FakePool(on_start=join, on_assign=die), stops=stops).run()
    pool = FakePool(on_start=join, on_assign=commit(job))
    make_loop(job, pool).run()
    assert any(order.row_by_row for order in pool.orders)


def test_records_of_earlier_runs_are_read_beside_the_work_and_count(job: StoredJob) -> None:
    job.commit(0)
    job.commit(1)
    loop = make_loop(job, FakePool(on_start=join, on_assign=commit(job)))
    loop.run(unread=[0, 1])
    assert isinstance(loop.progress, FakeSink)
    assert loop.tracker.presence(num_workers=0, now=0.0).samples_ok == 14


def test_too_many_errors_stop_the_run(job: StoredJob) -> None:
    job.commit(3)
    loop = make_loop(
        job,
        FakePool(on_start=join, on_assign=lambda worker, shard: []),
        judged_from_samples=1,
        max_error_fraction=0.0,
        drain_s=30.0,
    )
    loop.run(unread=[3])
    assert loop.ending.errors is not None
    assert (loop.ending.errors.errors, loop.ending.errors.samples) == (2, 4)
    assert "retry.max_error_fraction" in messages(loop)


def test_presence_is_stored_while_running_and_says_goodbye(job: StoredJob) -> None:
    loop = make_loop(job, FakePool(on_start=join, on_assign=commit(job)))
    loop.run()
    during = latest_presence(job.store)
    assert during is not None
    assert not during.finished
    loop.say_farewell()
    last = latest_presence(job.store)
    assert last is not None
    assert (last.finished, last.shards_done, last.samples_ok) == (True, 4, 14)
