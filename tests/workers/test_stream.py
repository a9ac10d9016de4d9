"""Several shards through one engine: their samples, their charges, and a broken engine."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

from tests.manifests.builders import StoredJob
from tests.workers.builders import empty_assembly
from tests.workers.fakes import FakeEngine, FakeRuntime
from workers.errors import EngineError
from workers.gate import Gate
from workers.samples import SampleResult
from workers.stream import SampleStream, Totals
from workers.work import GenerateWork

WAIT_S = 20.0


class SteppingClock:
    """One second passes between two readings."""

    def __init__(self) -> None:
        self._seconds: Iterator[int] = count()

    def __call__(self) -> float:
        return float(next(self._seconds))


def make_stream(job: StoredJob, *, runtime: FakeRuntime | None = None) -> SampleStream:
    work = GenerateWork(job.plan, runtime=runtime or FakeRuntime())
    return SampleStream(work, gate=Gate(None), clock=SteppingClock())


@pytest.fixture
def stream(job: StoredJob) -> Iterator[SampleStream]:
    """A stream whose thread has not begun; it is ended with the test."""
    stream = make_stream(job)
    yield stream
    stream.stop()


def run(stream: SampleStream) -> Thread:
    thread = Thread(target=stream.run)
    thread.start()
    return thread


def test_two_shards_go_through_one_engine(stream: SampleStream, job: StoredJob) -> None:
    first, second = empty_assembly(job), empty_assembly(job, shard=1)
    futures = [stream.submit(first), stream.submit(second)]
    thread = run(stream)
    for future in futures:
        future.result(timeout=WAIT_S)
    stream.stop()
    thread.join(WAIT_S)
    assert first.is_complete
    assert second.is_complete


def test_charges_add_up_to_all_that_was_spent(job: StoredJob) -> None:
    runtime = FakeRuntime()
    stream = make_stream(job, runtime=runtime)
    futures = [stream.submit(empty_assembly(job, shard=shard)) for shard in (0, 1)]
    thread = run(stream)
    charges = [future.result(timeout=WAIT_S) for future in futures]
    stream.stop()
    thread.join(WAIT_S)
    forwards = runtime.engine.counters()["forwards"]
    assert sum(charge.counters["forwards"] for charge in charges) == forwards
    # Each step lasts a second of the stepping clock.
    assert sum(charge.engine_s for charge in charges) == stream.num_steps


def test_totals_count_samples_errors_tokens_and_forwards(job: StoredJob) -> None:
    stream = make_stream(job)
    future = stream.submit(empty_assembly(job, shard=1))
    thread = run(stream)
    future.result(timeout=WAIT_S)
    stream.stop()
    thread.join(WAIT_S)
    classes = {"EmptyPrompt": 2}
    totals = Totals(ok=2, errors=2, tokens=4, nfe=6, drafted=10, accepted=2, error_classes=classes)
    assert stream.totals == totals


class BrokenEngine(FakeEngine):
    """Dies in its first step."""

    def step(self) -> list[SampleResult]:
        raise IndexError("out of pages")


def test_a_broken_engine_fails_every_shard_it_holds_and_every_later_one(job: StoredJob) -> None:
    runtime = FakeRuntime()
    runtime.engine = BrokenEngine()
    stream = make_stream(job, runtime=runtime)
    held = [stream.submit(empty_assembly(job, shard=shard)) for shard in (0, 1)]
    run(stream).join(WAIT_S)
    later = stream.submit(empty_assembly(job))
    errors = [future.exception(timeout=WAIT_S) for future in [*held, later]]
    assert [type(error) for error in errors] == [EngineError] * 3


def test_a_stopped_stream_fails_what_it_holds(stream: SampleStream, job: StoredJob) -> None:
    future = stream.submit(empty_assembly(job))
    stream.stop()
    stream.run()
    assert isinstance(future.exception(timeout=WAIT_S), EngineError)


def test_a_gate_holds_a_sample_until_it_is_opened(tmp_path: Path, job: StoredJob) -> None:
    hold = tmp_path / "hold-0-1"
    hold.touch()
    work = GenerateWork(job.plan, runtime=FakeRuntime())
    stream = SampleStream(work, gate=Gate(str(tmp_path)), clock=SteppingClock())
    future = stream.submit(empty_assembly(job))
    thread = run(stream)
    assert not future.done()
    hold.unlink()
    future.result(timeout=WAIT_S)
    stream.stop()
    thread.join(WAIT_S)
