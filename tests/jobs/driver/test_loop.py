"""The loop over a scripted pool: storage decides, and shards are done once."""

from collections import Counter

from jobs.driver.notices import Notice, Reported
from manifests.journal import latest_presence
from manifests.protocol import read_records, read_seal
from schedulers.events import ShardCommitted, ShardLost
from tests.jobs.driver.fakes import (
    FakePool,
    FakeSink,
    commit,
    join,
)
from tests.jobs.driver.loops import OTHER_ATTEMPT, failure, make_loop, report
from tests.manifests.builders import StoredJob
from workers.attempt import ShardOutcome


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


def test_records_of_earlier_runs_are_read_beside_the_work_and_count(job: StoredJob) -> None:
    job.commit(0)
    job.commit(1)
    loop = make_loop(job, FakePool(on_start=join, on_assign=commit(job)))
    loop.run(unread=[0, 1])
    assert isinstance(loop.progress, FakeSink)
    assert loop.tracker.presence(num_workers=0, now=0.0).samples_ok == 14


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
