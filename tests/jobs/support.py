"""Jobs for tests: model directories that pass inspection, and committed output without a model.

Outputs are made by the product's own attempt runner over `FakeWork`, so that what tests read has
passed through the real writer and the real commit protocol.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.job_file import load_job
from jobs.planning import PlannedJob, plan_job
from jobs.reading import OpenJob
from manifests.job import JobSpec
from manifests.keys import data_key
from manifests.open_revision import open_revision
from manifests.plan import Plan, ShardPlan
from manifests.staged import StagedRow
from workers.attempt import AttemptRunner, ShardOrder
from workers.errors import RowError
from workers.gate import Gate
from workers.samples import CommitTrace, FinishReason, OutputSample
from workers.stream import SampleStream
from workers.work import SampleKeys, Work, raise_staged_error

BLOCK_LENGTH = 4
TARGET_CONFIG = {
    "architectures": ["SDARForCausalLM"],
    "vocab_size": 64,
    "block_size": BLOCK_LENGTH,
    "mask_token_id": 3,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "max_position_embeddings": 64,
}


def write_target(folder: Path) -> Path:
    """A directory that looks like a target; its weights hold nothing."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(TARGET_CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("{{ messages }}{{ enable_thinking }}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def write_drafter(folder: Path, *, block_length: int = BLOCK_LENGTH, **changes: object) -> Path:
    """A directory that looks like a drafter."""
    folder.mkdir(parents=True)
    config = {"shape": {}, "block_length": block_length, "target": "t", "data": "d"} | changes
    (folder / "drafter.json").write_text(json.dumps(config))
    (folder / "drafter.safetensors").write_bytes(b"weights")
    return folder


def write_rows(path: Path, rows: Sequence[object]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_job(folder: Path, *, rows: Sequence[object], settings: Sequence[str] = ()) -> Path:
    """A job file with everything it names; `settings` are lines of YAML groups in flow style."""
    write_rows(folder / "prompts.jsonl", rows)
    if not (folder / "target").exists():
        write_target(folder / "target")
    path = folder / "job.yaml"
    lines = [
        f"input: {{uri: {folder / 'prompts.jsonl'}, columns: {{id: id}}}}",
        f"target: {{path: {folder / 'target'}}}",
        f"output: {{uri: {folder / 'out'}, trace: commits}}",
        "shards: {rows: 2}",
        *settings,
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def prompts(count: int) -> list[dict[str, object]]:
    """Rows with ids, prompts and a carried column."""
    return [{"id": f"r{i}", "prompt": f"say {i}", "family": "ab"[i % 2]} for i in range(count)]


class FakeWork:
    """Answers every prompt with its own characters as tokens, committed from left to right."""

    dtype = None

    def __init__(self, plan: Plan) -> None:
        self._keys = SampleKeys(plan)
        self._max_tokens = plan.job.decode.max_tokens
        self._waiting: deque[OutputSample] = deque()
        self._steps = 0

    def admit(self, shard: ShardPlan, rows: Sequence[StagedRow]) -> list[OutputSample]:
        """Queue the samples of good rows; give back the errors of the others."""
        errors: list[OutputSample] = []
        for row in rows:
            index = shard.index_of(row.row)
            try:
                raise_staged_error(row)
            except RowError as error:
                errors += self._keys.errors(shard, row=index, staged=row, error=error)
                continue
            self._waiting += self._samples(shard, index=index, row=row)
        return errors

    def _samples(self, shard: ShardPlan, *, index: int, row: StagedRow) -> list[OutputSample]:
        return [
            fake_output(
                row,
                shard=shard.shard,
                index=index,
                sample=sample,
                key=self._keys.key(shard, row=index, staged=row, sample=sample),
                max_tokens=self._max_tokens,
            )
            for sample in range(self._keys.num_samples)
        ]

    def step(self) -> list[OutputSample]:
        """One sample."""
        self._steps += 1
        return [self._waiting.popleft()] if self._waiting else []

    def has_work(self) -> bool:
        """Whether a sample waits."""
        return bool(self._waiting)

    def counters(self) -> dict[str, int]:
        """Two forwards a step."""
        return {"forwards": 2 * self._steps}


def fake_tokens(row: StagedRow, *, max_tokens: int = 256) -> tuple[int, ...]:
    """The token ids that `FakeWork` answers with."""
    return tuple(map(ord, row.prompt or row.messages or ""))[:max_tokens]


def fake_trace(row: StagedRow, *, max_tokens: int = 256) -> CommitTrace:
    """The trajectory of these tokens; the prompt ends at position 10."""
    tokens = fake_tokens(row, max_tokens=max_tokens)
    count = len(tokens)
    return CommitTrace(
        positions=tuple(range(10, 10 + count)),
        tokens=tokens,
        steps=tuple(range(count)),
        log_probabilities=(-0.5,) * count,
        confidences=(-0.25,) * count,
    )


def fake_output(
    row: StagedRow, *, shard: int, index: int, sample: int, key: int, max_tokens: int = 256
) -> OutputSample:
    """One answer; it took a forward for every two transitions."""
    tokens = fake_tokens(row, max_tokens=max_tokens)
    trace = fake_trace(row, max_tokens=max_tokens)
    return OutputSample(
        shard=shard,
        row=index,
        sample=sample,
        key=key,
        text=f"echo: {row.prompt}",
        token_ids=tokens,
        finish_reason="length" if len(tokens) == max_tokens else "stop",
        tokens_with_stop=len(tokens) + 1,
        prompt_tokens=10,
        nfe=3,
        transitions=len(tokens),
        rounds=3,
        drafted=8,
        accepted=4,
        positions=100,
        wall_s=0.5,
        queue_s=0.25,
        token_trace=trace.of_tokens(10, len(tokens)),
        trace=trace,
    )


Answer = tuple[tuple[int, ...], FinishReason, CommitTrace]


class FakeReplayer:
    """Answers as `FakeWork` does, after a change."""

    def __init__(
        self, change: Callable[[Answer], Answer] = lambda answer: answer, *, max_tokens: int = 256
    ) -> None:
        self.change = change
        self.max_tokens = max_tokens
        self.replayed: list[tuple[int, int, str, int]] = []

    def replay(self, shard: ShardPlan, *, row_index: int, row: StagedRow, sample: int) -> Answer:
        """Note what is asked for, and answer."""
        self.replayed.append((shard.shard, row_index, row.id, sample))
        tokens = fake_tokens(row, max_tokens=self.max_tokens)
        finish_reason: FinishReason = "length" if len(tokens) == self.max_tokens else "stop"
        trace = fake_trace(row, max_tokens=self.max_tokens)
        return self.change((tokens, finish_reason, trace))


def commit(
    planned: PlannedJob | OpenJob,
    *,
    shards: Sequence[int],
    worker: str = "w0",
    work: Work | None = None,
) -> None:
    """Decode and commit some shards of what the job has open; without `work`, by echoing."""
    revision = open_revision(planned.store, planned.plan)
    assert revision is not None
    plan = revision.plan.model_copy(update={"job": revision.job(planned.plan.job)})
    stream = SampleStream(work or FakeWork(plan), gate=Gate(None), clock=lambda: 0.0)
    runner = AttemptRunner(
        planned.store,
        plan=revision.plan,
        job=plan.job,
        stream=stream,
        worker=worker,
        versions={"v": "1"},
        revision=revision,
    )
    thread = threading.Thread(target=stream.run)
    thread.start()
    try:
        statuses = {runner.run(ShardOrder(shard=shard)).status for shard in shards}
    finally:
        stream.stop()
        thread.join()
    assert statuses <= {"committed"}, statuses


def finish(job: PlannedJob | OpenJob) -> None:
    """Decode, commit and seal what the job has open."""
    revision = open_revision(job.store, job.plan)
    assert revision is not None
    commit(job, shards=[shard.shard for shard in revision.shards])
    revision.seal()


def plant_loser(job: PlannedJob | OpenJob, *, shard: int = 0) -> str:
    """A whole data file of an attempt that never came to its record; its key."""
    counting = next(k for k in job.store.list("data/") if k.startswith(f"data/{shard:08d}"))
    key = data_key(shard, "f" * 16)
    with job.store.open_local(counting) as path:
        job.store.put_file_if_absent(key, path)
    return key


def planned_job(
    folder: Path, *, rows: Sequence[object], settings: Sequence[str] = (), set_: Sequence[str] = ()
) -> PlannedJob:
    """A job that is planned, and nothing more."""
    return plan_job(job_of(folder, rows=rows, settings=settings, set_=set_))


def job_of(
    folder: Path, *, rows: Sequence[object], settings: Sequence[str] = (), set_: Sequence[str] = ()
) -> JobSpec:
    """The specification of a job file written into `folder`."""
    return load_job(write_job(folder, rows=rows, settings=settings), set_)


def finished_job(
    folder: Path, *, rows: Sequence[object], settings: Sequence[str] = (), set_: Sequence[str] = ()
) -> OpenJob:
    """A job that is committed and sealed."""
    planned = planned_job(folder, rows=rows, settings=settings, set_=set_)
    finish(planned)
    return OpenJob(store=planned.store, plan=planned.plan)
