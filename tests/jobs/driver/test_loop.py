"""The loop over a scripted pool: storage decides, trouble is passed on, stops are obeyed."""

from collections import Counter
from itertools import count

import pytest

from jobs.driver.errors import RefusedWorkerError
from jobs.driver.loop import Loop
from jobs.driver.notices import Gone, Notice, Refused, Reported
from jobs.driver.tracker import Tracker
from manifests.journal import latest_presence, read_failures
from manifests.open_revision import OpenRevision
from manifests.protocol import read_records, read_seal
from schedulers.events import ShardCommitted, ShardLost
from schedulers.machine import Scheduler
from tests.jobs.driver.fakes import FakePool, FakeSink, FakeStops, commit, join
from tests.manifests.builders import StoredJob
from workers.attempt import Attempt, ShardOutcome

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
    attempts: int = 2,
    drain_s: float = float("inf"),
    refuse_at_once: bool = True,
    stops: FakeStops | None = None,
) -> Loop:
    records = read_records(job.store, job.plan)
    return Loop(
        revision=OpenRevision(store=job.store, plan=job.plan),
        scheduler=Scheduler(
            [(shard.shard, shard.expected_cost) for shard in job.plan.shards],
            committed=records,
            attempts=attempts,
            num_workers=num_workers,
            drain_s=drain_s,
        ),
        pool=pool,
        tracker=Tracker(plan=job.plan, records=records),
        progress=FakeSink(),
        stop_requests=stops or FakeStops(),
        clock=(float(second) for second in count()).__next__,
        num_workers=num_workers,
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
    assert loop.seal is not None
    assert read_seal(job.store) == loop.seal


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
    assert loop.seal is not None


def test_the_record_counts_whoever_wrote_it(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        job.commit(shard)
        outcome = ShardOutcome(shard=shard, attempt=OTHER_ATTEMPT, status="lost")
        return [Reported(worker=worker, outcome=outcome)]

    loop = make_loop(job, FakePool(on_start=join, on_assign=react))
    loop.run()
    assert loop.seal is not None
    assert len(loop.tracker.records) == 4
    heard = [type(step.event) for step in loop.scheduler.history]
    assert (heard.count(ShardLost), heard.count(ShardCommitted)) == (4, 0)


def test_a_dead_worker_is_replaced_and_its_shards_are_done_by_another(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "w1":
            return [Gone(worker=worker, reason="death", message="killed")]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert pool.started == ["w1", "w2"]
    assert loop.seal is not None
    assert "w1 is gone (killed)" in messages(loop)


def test_a_death_leaves_a_failure_with_the_attempt_that_was_seen(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "w1":
            seen = Attempt(shard=shard, attempt=OTHER_ATTEMPT, phase="decoding")
            return [Gone(worker=worker, reason="death", message="killed", running=(seen,))]
        return commit(job)(worker, shard)

    make_loop(job, FakePool(on_start=join, on_assign=react)).run()
    failures = read_failures(job.store)
    assert OTHER_ATTEMPT in {failure.attempt for failure in failures}
    assert {(f.kind, f.message, f.worker) for f in failures} == {("rows", "killed", "w1")}


def test_a_record_written_with_the_last_breath_counts(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        job.commit(shard)
        return [Gone(worker=worker, reason="death", message="killed")]

    # Every worker dies; if storage were looked at later, the only attempt would be used up.
    loop = make_loop(job, FakePool(on_start=join, on_assign=react), attempts=1)
    loop.run()
    assert loop.seal is not None
    assert loop.given_up == {}


def test_a_failing_shard_is_given_up_after_its_attempts_and_the_rest_goes_on(
    job: StoredJob,
) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        return [failure(worker, shard)] if shard == 1 else commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert loop.seal is None
    assert loop.given_up == {1: "ValueError: no"}
    assert sorted(read_records(job.store, job.plan)) == [0, 2, 3]
    assert Counter(shard for _, shard in pool.assigned)[1] == 2


def test_a_worker_with_a_broken_engine_is_ended_and_replaced(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "w1":
            return [failure(worker, shard, is_worker_usable=False)]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert pool.ended[0] == "w1"
    assert loop.seal is not None


def test_a_refused_worker_ends_a_local_run_in_one_sentence(job: StoredJob) -> None:
    pool = FakePool(
        on_start=lambda worker: [Refused(worker=worker, sentence="other torch")],
        on_assign=commit(job),
    )
    with pytest.raises(RefusedWorkerError, match=r"^other torch$"):
        make_loop(job, pool).run()


def test_a_cluster_goes_on_with_the_workers_that_are_not_refused(job: StoredJob) -> None:
    def start(worker: str) -> list[Notice]:
        return [Refused(worker=worker, sentence="other torch")] if worker == "w1" else join(worker)

    pool = FakePool(on_start=start, on_assign=commit(job))
    loop = make_loop(job, pool, num_workers=2, refuse_at_once=False)
    loop.run()
    assert loop.seal is not None
    assert "other torch" in messages(loop)


def test_a_cluster_that_refuses_every_worker_ends_with_the_reason(job: StoredJob) -> None:
    pool = FakePool(
        on_start=lambda worker: [Refused(worker=worker, sentence="other torch")],
        on_assign=commit(job),
    )
    with pytest.raises(RefusedWorkerError, match=r"^other torch$"):
        make_loop(job, pool, num_workers=2, refuse_at_once=False).run()


def stopping_at(job: StoredJob, stops: FakeStops, *, signals: int) -> FakePool:
    """A pool under which the signals come when two shards are leased."""

    def react(worker: str, shard: int) -> list[Notice]:
        if len(pool.assigned) == 2:
            stops.num_received = signals
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    return pool


def test_a_drain_finishes_what_runs_and_begins_nothing(job: StoredJob) -> None:
    stops = FakeStops()
    pool = stopping_at(job, stops, signals=1)
    loop = make_loop(job, pool, stops=stops)
    loop.run()
    assert loop.is_drained
    assert len(pool.assigned) == 2
    assert sorted(loop.tracker.records) == sorted(shard for _, shard in pool.assigned)
    assert "draining: 2 shards" in messages(loop)


def test_a_drain_ends_at_its_deadline_whatever_still_runs(job: StoredJob) -> None:
    stops = FakeStops()

    def react(worker: str, shard: int) -> list[Notice]:
        stops.num_received = 1
        return []

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool, stops=stops, drain_s=30.0)
    loop.run()
    assert loop.is_drained
    assert not loop.tracker.records


def test_a_second_signal_ends_the_run_at_once(job: StoredJob) -> None:
    stops = FakeStops()
    loop = make_loop(job, stopping_at(job, stops, signals=2), stops=stops)
    loop.run()
    assert loop.is_cancelled
    assert not loop.tracker.records


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
