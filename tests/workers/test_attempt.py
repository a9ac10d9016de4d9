"""One attempt from staged rows to the commit record, and what failures leave behind."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest

from manifests.journal import last_announcement, read_failures
from manifests.keys import commit_key, data_key, log_key
from manifests.protocol import read_record
from manifests.store.base import Store
from tests.manifests.builders import StoredJob
from tests.workers.builders import empty_assembly, full_assembly
from tests.workers.fakes import FakeEngine, FakeRuntime
from workers.attempt import (
    POISON_MESSAGE,
    Attempt,
    AttemptRunner,
    ShardOrder,
    sample_sums,
)
from workers.gate import Gate
from workers.samples import SampleResult
from workers.stream import SampleStream
from workers.work import GenerateWork

MakeRunner = Callable[..., AttemptRunner]


@pytest.fixture
def make_runner(job: StoredJob) -> Iterator[MakeRunner]:
    """Runners over live streams, which are ended with the test."""
    streams: list[tuple[SampleStream, Thread]] = []

    def make(*, engine: FakeEngine | None = None, store: Store | None = None) -> AttemptRunner:
        runtime = FakeRuntime()
        runtime.engine = engine or runtime.engine
        work = GenerateWork(job.plan, runtime=runtime)
        stream = SampleStream(work, gate=Gate(None), clock=lambda: 0.0)
        thread = Thread(target=stream.run)
        thread.start()
        streams.append((stream, thread))
        return AttemptRunner(
            store or job.store,
            plan=job.plan,
            job=job.plan.job,
            stream=stream,
            worker="w@host",
            versions={"torch": "2.13"},
        )

    yield make
    for stream, thread in streams:
        stream.stop()
        thread.join(20)


def test_an_attempt_commits_its_shard(make_runner: MakeRunner, job: StoredJob) -> None:
    outcome = make_runner().run(ShardOrder(shard=1))
    record = read_record(job.store, job.plan, 1)
    assert record is not None
    assert (outcome.status, outcome.attempt) == ("committed", record.attempt)
    assert (record.rows, record.samples, record.ok, record.errors) == (2, 4, 2, 2)
    sums = {"forwards": 1, "tokens": 4, "nfe": 6, "transitions": 8, "tied": 0}
    drafts_and_errors = {"drafted": 10, "accepted": 2, "errors:EmptyPrompt": 2}
    assert record.counters == sums | drafts_and_errors
    assert (record.worker, record.versions) == ("w@host", {"torch": "2.13"})


def test_the_file_says_which_job_attempt_and_rule_it_is_from(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    outcome = make_runner().run(ShardOrder(shard=0))
    metadata = pq.read_metadata(job.path(data_key(0, outcome.attempt))).metadata
    assert metadata[b"spotbatch.job"] == job.plan.job_id.encode()
    assert metadata[b"spotbatch.attempt"] == outcome.attempt.encode()
    assert b'"rule":"strict"' in metadata[b"spotbatch.rule"]
    assert metadata[b"spotbatch.distribution_preserving"].startswith(b"true: ")


def test_the_file_says_the_rules_constants(make_runner: MakeRunner, job: StoredJob) -> None:
    outcome = make_runner().run(ShardOrder(shard=0))
    metadata = pq.read_metadata(job.path(data_key(0, outcome.attempt))).metadata
    rule = json.loads(metadata[b"spotbatch.rule"])
    names = ("rule", "tau", "temperature", "top_k", "top_p", "verifier")
    assert [rule[name] for name in names] == ["strict", None, 0.0, 0, 1.0, "coupled"]


def test_transitions_settled_by_a_tie_break_are_summed_over_the_shard(job: StoredJob) -> None:
    assembly = empty_assembly(job)
    for sample in full_assembly(job).in_order():
        assembly.add(replace(sample, tied=sample.row))
    assert sample_sums(assembly)["tied"] == 6


def test_every_attempt_has_an_id_of_its_own_and_a_late_one_is_lost(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    runner = make_runner()
    first, second = runner.run(ShardOrder(shard=0)), runner.run(ShardOrder(shard=0))
    assert (first.status, second.status) == ("committed", "lost")
    assert first.attempt != second.attempt
    assert job.store.list("data/") == [data_key(0, first.attempt)]


class BrokenEngine(FakeEngine):
    """Dies in its first step."""

    def step(self) -> list[SampleResult]:
        raise RuntimeError("out of memory")


def test_a_broken_engine_fails_the_attempt_and_makes_the_worker_useless(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    outcome = make_runner(engine=BrokenEngine()).run(ShardOrder(shard=0))
    assert (outcome.status, outcome.infrastructure) == ("failed", False)
    assert not outcome.is_worker_usable
    assert outcome.error == "EngineError: RuntimeError: out of memory"
    (failure,) = read_failures(job.store)
    assert (failure.shard, failure.attempt) == (0, outcome.attempt)
    assert (failure.kind, failure.is_death, failure.row) == ("rows", True, None)
    assert read_record(job.store, job.plan, 0) is None


class FullStore:
    """A store whose disk is full: reads work, writes do not."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def put_if_absent(self, key: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    def put_file_if_absent(self, key: str, path: Path) -> None:
        raise OSError(28, "No space left on device")


def test_storage_faults_are_infrastructure_and_the_worker_goes_on(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    outcome = make_runner(store=FullStore(job.store)).run(ShardOrder(shard=0))
    assert (outcome.status, outcome.infrastructure) == ("failed", True)
    assert outcome.is_worker_usable
    assert "No space left" in (outcome.error or "")


def test_damaged_staged_input_fails_the_attempt_by_name(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    part = job.plan.shards[0].part
    job.path(part).write_bytes(b"PAR1 no more")
    outcome = make_runner().run(ShardOrder(shard=0))
    assert outcome.status == "failed"
    assert part in (outcome.error or "")


def test_nothing_is_running_after_an_attempt(make_runner: MakeRunner) -> None:
    runner = make_runner()
    runner.run(ShardOrder(shard=0))
    assert runner.running() == ()


def test_a_running_attempt_is_seen_with_its_phase(job: StoredJob) -> None:
    seen: list[Attempt] = []

    class Watched(FakeEngine):
        def step(self) -> list[SampleResult]:
            seen.extend(runner.running())
            return super().step()

    runtime = FakeRuntime()
    runtime.engine = Watched()
    work = GenerateWork(job.plan, runtime=runtime)
    stream = SampleStream(work, gate=Gate(None), clock=lambda: 0.0)
    runner = AttemptRunner(
        job.store, plan=job.plan, job=job.plan.job, stream=stream, worker="w", versions={}
    )
    thread = Thread(target=stream.run)
    thread.start()
    outcome = runner.run(ShardOrder(shard=0))
    stream.stop()
    thread.join(20)
    assert {(a.shard, a.attempt, a.phase) for a in seen} == {(0, outcome.attempt, "decoding")}
    assert [a.fraction for a in seen] == [0.0, 2 / 6, 4 / 6]
    assert job.store.list(commit_key(0)) == [commit_key(0)]


def announced_rows(job: StoredJob) -> list[int]:
    return [
        int(key.rpartition("-")[2].removesuffix(".json")) for key in job.store.list("announced/")
    ]


def test_row_by_row_announces_each_row_and_that_all_got_through(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    outcome = make_runner().run(ShardOrder(shard=0, row_by_row=True))
    assert outcome.status == "committed"
    assert announced_rows(job) == [0, 1, 2, 3]
    said = last_announcement(job.store, 0, epoch="", worker="w")
    assert said is not None
    assert (said.row, said.attempt) == (3, outcome.attempt)


def test_row_by_row_gives_the_same_tokens(make_runner: MakeRunner, job: StoredJob) -> None:
    runner = make_runner()
    alone = runner.run(ShardOrder(shard=0, row_by_row=True))
    record = read_record(job.store, job.plan, 0)
    assert record is not None
    together = pq.read_table(job.path(record.data_key))
    assert together["token_ids"].to_pylist() == [
        list(sample.token_ids or ()) for sample in full_assembly(job).in_order()
    ]
    assert alone.attempt == record.attempt


def test_a_convicted_row_becomes_error_rows_without_being_decoded(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    engine = FakeEngine()
    order = ShardOrder(shard=0, row_by_row=True, convicted=(1,))
    outcome = make_runner(engine=engine).run(order)
    table = pq.read_table(job.path(data_key(0, outcome.attempt)))
    assert table["error_class"].to_pylist() == [None, None, "PoisonRow", "PoisonRow", None, None]
    assert table["error_message"].to_pylist()[2] == POISON_MESSAGE
    assert {request.row for request in engine.requests} == {0, 2}
    assert announced_rows(job) == [0, 2, 3]


def test_an_engine_that_breaks_under_a_row_alone_leaves_that_row_on_record(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    class BreaksLater(FakeEngine):
        def step(self) -> list[SampleResult]:
            if len(self.requests) > 2:
                raise MemoryError
            return super().step()

    make_runner(engine=BreaksLater()).run(ShardOrder(shard=0, row_by_row=True))
    (failure,) = read_failures(job.store)
    assert (failure.is_death, failure.row) == (True, 1)


def test_a_row_that_cannot_be_announced_is_not_begun_and_the_engine_stays_sound(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    engine = FakeEngine()
    runner = make_runner(engine=engine, store=FullStore(job.store))
    outcome = runner.run(ShardOrder(shard=0, row_by_row=True))
    assert (outcome.infrastructure, outcome.is_worker_usable) == (True, True)
    assert engine.requests == []


class FailsLater(FakeEngine):
    """Dies in its second step."""

    def step(self) -> list[SampleResult]:
        if self.counters()["forwards"]:
            raise RuntimeError("out of memory")
        return super().step()


def test_a_failed_attempt_leaves_the_end_of_its_log_and_a_good_one_none(
    make_runner: MakeRunner, job: StoredJob
) -> None:
    make_runner().run(ShardOrder(shard=1))
    assert job.store.list("logs/") == []
    outcome = make_runner(engine=FailsLater()).run(ShardOrder(shard=0))
    text = job.store.get(log_key(0, outcome.attempt)).decode()
    assert "decoding 6 samples of shard 0" in text
    assert '(id "id-2") sample 1: stop, 2 tokens' in text
    assert "failed with EngineError" in text
    assert "prompt" not in text
