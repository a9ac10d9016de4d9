"""Whole runs without Ray: what is started, what is left alone, and how an end is told."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

import jobs.driver.run
from jobs.driver import run_job
from jobs.driver.limits import limits_of
from jobs.driver.notices import Notice, Reported
from jobs.driver.result import EXIT_CODES, Outcome, RunResult
from jobs.driver.tracker import Tracker
from jobs.progress import NoProgress
from manifests.errors import DamagedError
from manifests.job import JobSpec
from manifests.job_running import Cluster, Retry
from manifests.journal import read_presences, write_presence
from manifests.keys import commit_key
from manifests.protocol import read_seal, seal_job
from schedulers.limits import Limits
from tests.jobs.driver.fakes import FakeNodes, FakePool, commit, join
from tests.manifests.builders import StoredJob
from workers.attempt import ShardOutcome


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(cluster: object) -> None:
        raise AssertionError("a cluster was started")

    monkeypatch.setattr(jobs.driver.run, "ray_cluster", start)


def run(job: StoredJob, *, workers: int = 1) -> RunResult:
    spec = job.plan.job.model_copy(update={"cluster": Cluster(workers=workers)})
    return run_job(job.store, job.plan, spec, NoProgress())


def commit_all(job: StoredJob) -> None:
    for shard in job.plan.shards:
        job.commit(shard.shard)


def test_a_sealed_job_starts_nothing(job: StoredJob) -> None:
    commit_all(job)
    seal = seal_job(job.store, job.plan)
    result = run(job)
    assert (result.outcome, result.exit_code) == ("complete", 0)
    assert (result.num_committed, result.num_before, result.seal) == (4, 4, seal)


def test_a_job_that_lacks_only_its_seal_is_sealed_without_a_cluster(job: StoredJob) -> None:
    commit_all(job)
    result = run(job)
    assert result.outcome == "sealed"
    assert read_seal(job.store) == result.seal


def test_a_damaged_record_stops_the_run_by_name(job: StoredJob, pool: FakePool) -> None:
    job.commit(0)
    job.path(commit_key(0)).write_bytes(b"{}")
    with pytest.raises(DamagedError, match=commit_key(0)):
        run(job)


@pytest.fixture
def pool(job: StoredJob, monkeypatch: pytest.MonkeyPatch) -> FakePool:
    """A pool whose workers commit; it takes the place of Ray."""
    pool = FakePool(on_start=join, on_assign=commit(job))
    monkeypatch.setattr(jobs.driver.run, "ray_cluster", lambda cluster: nullcontext())
    monkeypatch.setattr(jobs.driver.run, "RayPool", lambda settings: pool)
    monkeypatch.setattr(jobs.driver.run, "RayNodes", FakeNodes)
    return pool


def test_shards_with_a_record_are_not_decoded_again(job: StoredJob, pool: FakePool) -> None:
    job.commit(0)
    job.commit(3)
    result = run(job)
    assert sorted(shard for _, shard in pool.assigned) == [1, 2]
    assert (result.outcome, result.num_committed, result.num_before) == ("sealed", 4, 2)


def test_no_more_workers_are_started_than_shards_are_missing(
    job: StoredJob, pool: FakePool
) -> None:
    for shard in (0, 1, 2):
        job.commit(shard)
    run(job, workers=3)
    assert pool.started == ["worker-0001"]


def test_shards_that_were_given_up_are_named(
    job: StoredJob, pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if shard != 2:
            return commit(job)(worker, shard)
        outcome = ShardOutcome(shard=2, attempt="0" * 16, status="failed", error="ValueError: no")
        return [Reported(worker=worker, outcome=outcome)]

    monkeypatch.setattr(pool, "_on_assign", react)
    result = run(job)
    assert (result.outcome, result.exit_code) == ("failed", 1)
    assert result.given_up == {2: "ValueError: no"}


def test_every_worker_is_ended_even_if_the_run_is_broken_off(
    job: StoredJob, pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        notices = commit(job)(worker, shard)
        job.path(commit_key(shard)).write_bytes(b"{}")
        return notices

    monkeypatch.setattr(pool, "_on_assign", react)
    with pytest.raises(DamagedError):
        run(job)
    assert pool.ended == pool.started == ["worker-0001"]


def test_a_crash_loop_starts_nothing(job: StoredJob) -> None:
    for epoch in ("a", "b", "c", "d", "e"):
        died = Tracker(plan=job.plan, shards=job.plan.shards, epoch=epoch).presence(
            num_workers=1, now=0.0
        )
        write_presence(job.store, died)
    result = run(job)
    assert (result.outcome, result.exit_code) == ("crash_loop", 1)
    assert "the last 5 drivers" in (result.message or "")


def test_a_driver_leaves_its_presence_before_anything_can_go_wrong(job: StoredJob) -> None:
    with pytest.raises(AssertionError, match="a cluster was started"):
        run(job)
    (presence,) = read_presences(job.store)
    assert not presence.finished


def test_a_run_without_a_place_for_any_worker_names_what_is_wanted(
    job: StoredJob, pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_on_start", lambda worker: [])
    monkeypatch.setattr(jobs.driver.run, "resources_in_words", lambda wanted: f"wants {wanted}")
    cluster = Cluster(start_timeout_s=0.001, cpus_per_worker=64)
    spec = job.plan.job.model_copy(update={"cluster": cluster})
    result = run_job(job.store, job.plan, spec, NoProgress())
    assert (result.outcome, result.exit_code) == ("starved", 3)
    assert "cluster.start_timeout_s): wants {'CPU': 64.0}" in (result.message or "")


def test_too_many_errors_fail_the_run_and_say_so(
    job: StoredJob, pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limits(spec: JobSpec, *, capacity: int) -> Limits:
        return replace(limits_of(spec, capacity=capacity), judged_from_samples=1, drain_s=0.0)

    job.commit(3)
    monkeypatch.setattr(pool, "_on_assign", lambda worker, shard: [])
    monkeypatch.setattr(jobs.driver.run, "limits_of", limits)
    spec = job.plan.job.model_copy(update={"retry": Retry(max_error_fraction=0.25)})
    result = run_job(job.store, job.plan, spec, NoProgress())
    assert (result.outcome, result.exit_code) == ("errors", 1)
    assert "2 of 4 samples are errors, more than the share 0.25" in (result.message or "")


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ("complete", 0),
        ("sealed", 0),
        ("failed", 1),
        ("errors", 1),
        ("crash_loop", 1),
        ("drained", 3),
        ("starved", 3),
        ("cancelled", 130),
    ],
)
def test_exit_codes(outcome: Outcome, code: int) -> None:
    assert RunResult(outcome=outcome).exit_code == code
    assert len(EXIT_CODES) == 8
