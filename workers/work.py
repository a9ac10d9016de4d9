"""What a worker can be asked to do with rows: `generate` or `collect` with a model, or `null`.

A kind of work takes rows of any number of shards and gives samples back in any order: each (row,
sample) once, as an output or as an error. Trouble with one row stays with that row; an exception
out of `step` means that the engine cannot be trusted any more.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from manifests.job import JobSpec
from manifests.plan import Plan, ShardPlan, sample_key
from manifests.staged import StagedRow
from workers.errors import RowError
from workers.samples import FinishReason, OutputSample, SampleRequest, SampleResult

Value = TypeVar("Value")


class Engine(Protocol):
    """The batched decoder."""

    def add(self, request: SampleRequest) -> None:
        """Queue one sample; it enters the batch when a slot is free."""

    def step(self) -> list[SampleResult]:
        """One round for the batch; the samples that it finished."""

    def has_work(self) -> bool:
        """Whether a sample waits or is being decoded."""

    def counters(self) -> dict[str, int]:
        """What has been spent since the engine was made; only grows."""


class Runtime(Protocol):
    """A loaded target with its tokenizer, drafter and engine."""

    @property
    def engine(self) -> Engine:
        """The batched decoder."""

    @property
    def dtype(self) -> str:
        """What the target computes in, such as `float32`."""

    def encode(self, row: StagedRow) -> tuple[int, ...]:
        """A row's prompt ids; `RowError` if it cannot be decoded."""

    def decode(self, token_ids: Sequence[int]) -> str:
        """Ids to text."""

    def finish(self, result: SampleResult) -> tuple[str, tuple[int, ...], FinishReason]:
        """Text, token ids and finish reason after stop strings."""


class Work(Protocol):
    """One kind of work, for rows of any number of shards at once."""

    @property
    def dtype(self) -> str | None:
        """What is computed in; None if nothing is, so that no numerics class is claimed."""

    def admit(self, shard: ShardPlan, rows: Sequence[StagedRow]) -> list[OutputSample]:
        """Take rows of a shard; the error rows of those that cannot be decoded come at once."""

    def step(self) -> list[OutputSample]:
        """Go on a little; the samples that this finished."""

    def has_work(self) -> bool:
        """Whether a sample is outstanding."""

    def counters(self) -> dict[str, int]:
        """What has been spent so far; only grows."""


def open_work(plan: Plan, *, job: JobSpec) -> Work:
    """Load what the job's kind of work needs. `job` has this run's operational settings."""
    if plan.job.work == "null":
        return NullWork(plan)
    if plan.job.work == "collect":
        from workers.collection import load_collecting

        return load_collecting(plan, job=job)
    from workers.runtime import load_runtime

    return postprocessed(plan, lambda: GenerateWork(plan, runtime=load_runtime(job)))


def postprocessed(plan: Plan, load: Callable[[], Work]) -> Work:
    """The work that ``load`` gives, behind the job's own function if it names one.

    The function is looked for first: a model takes longer to load.
    """
    name = plan.job.output.postprocess
    if name is None:
        return load()
    from workers.postprocessing import PostprocessedWork, load_postprocess

    function = load_postprocess(name)
    return PostprocessedWork(load(), function, num_samples=plan.job.sampling.n)


class SampleKeys:
    """Names samples: the 64-bit key of each (row, sample) of a planned shard."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.num_samples = plan.job.sampling.n

    def key(self, shard: ShardPlan, *, row: int, staged: StagedRow, sample: int) -> int:
        """The sample key, by the row's seed or the job's seed scope."""
        return sample_key(self._plan, shard, row, staged, sample)

    def errors(
        self, shard: ShardPlan, *, row: int, staged: StagedRow, error: RowError
    ) -> list[OutputSample]:
        """A row's samples when it cannot be decoded: each one an error."""
        return [
            OutputSample(
                shard=shard.shard,
                row=row,
                sample=sample,
                key=self.key(shard, row=row, staged=staged, sample=sample),
                error_class=error.error_class,
                error_message=error.message,
            )
            for sample in range(self.num_samples)
        ]


def guard_row(make: Callable[[], Value]) -> Value | RowError:
    """Run something that concerns one row only; whatever it raises stays with the row."""
    try:
        return make()
    except RowError as error:
        return error
    except Exception as error:
        return RowError(type(error).__name__, str(error) or "no message")


class GenerateWork:
    """Decode rows with a loaded target."""

    def __init__(self, plan: Plan, *, runtime: Runtime) -> None:
        self._keys = SampleKeys(plan)
        self._max_tokens = plan.job.decode.max_tokens
        self._runtime = runtime

    @property
    def dtype(self) -> str | None:
        """What the target computes in."""
        return self._runtime.dtype

    def admit(self, shard: ShardPlan, rows: Sequence[StagedRow]) -> list[OutputSample]:
        """Encode the rows and queue their samples; rows in trouble come back as errors."""
        errors: list[OutputSample] = []
        for staged in rows:
            row = shard.index_of(staged.row)
            prompt_ids = guard_row(partial(self._encode, staged))
            if isinstance(prompt_ids, RowError):
                errors += self._keys.errors(shard, row=row, staged=staged, error=prompt_ids)
            else:
                self._queue(shard, row=row, staged=staged, prompt_ids=prompt_ids)
        return errors

    def _encode(self, staged: StagedRow) -> tuple[int, ...]:
        raise_staged_error(staged)
        return self._runtime.encode(staged)

    def _queue(
        self, shard: ShardPlan, *, row: int, staged: StagedRow, prompt_ids: tuple[int, ...]
    ) -> None:
        for sample in range(self._keys.num_samples):
            self._runtime.engine.add(
                SampleRequest(
                    shard=shard.shard,
                    row=row,
                    sample=sample,
                    prompt_ids=prompt_ids,
                    key=self._keys.key(shard, row=row, staged=staged, sample=sample),
                    max_tokens=staged.max_tokens or self._max_tokens,
                    temperature=staged.temperature,
                )
            )

    def step(self) -> list[OutputSample]:
        """One round of the engine."""
        return [self._output(result) for result in self._runtime.engine.step()]

    def _output(self, result: SampleResult) -> OutputSample:
        finished = guard_row(partial(self._finish, result))
        if isinstance(finished, RowError):
            return failed_output(result, error=finished)
        text, token_ids, finish_reason = finished
        return decoded_output(result, text=text, token_ids=token_ids, finish_reason=finish_reason)

    def _finish(self, result: SampleResult) -> tuple[str, tuple[int, ...], FinishReason]:
        text, token_ids, finish_reason = self._runtime.finish(result)
        text.encode()  # a lone surrogate would fail the whole file, and not this sample
        return text, token_ids, finish_reason

    def has_work(self) -> bool:
        """Whether the engine holds a sample."""
        return self._runtime.engine.has_work()

    def counters(self) -> dict[str, int]:
        """The engine's."""
        return self._runtime.engine.counters()


class NullWork:
    """No model: every row gives empty text. For rehearsing a job's plan, cluster and storage."""

    def __init__(self, plan: Plan) -> None:
        self._keys = SampleKeys(plan)
        self._waiting: deque[tuple[ShardPlan, int, StagedRow]] = deque()
        self._num_rows = 0

    @property
    def dtype(self) -> str | None:
        """Nothing is computed."""
        return None

    def admit(self, shard: ShardPlan, rows: Sequence[StagedRow]) -> list[OutputSample]:
        """Queue the rows; there is no trouble that would show at once."""
        self._waiting.extend((shard, shard.index_of(staged.row), staged) for staged in rows)
        return []

    def step(self) -> list[OutputSample]:
        """One row, with all its samples."""
        if not self._waiting:
            return []
        shard, row, staged = self._waiting.popleft()
        self._num_rows += 1
        error = guard_row(partial(raise_staged_error, staged))
        if isinstance(error, RowError):
            return self._keys.errors(shard, row=row, staged=staged, error=error)
        return [
            OutputSample(
                shard=shard.shard,
                row=row,
                sample=sample,
                key=self._keys.key(shard, row=row, staged=staged, sample=sample),
                text="",
                token_ids=(),
                finish_reason="stop",
            )
            for sample in range(self._keys.num_samples)
        ]

    def has_work(self) -> bool:
        """Whether a row waits."""
        return bool(self._waiting)

    def counters(self) -> dict[str, int]:
        """Rows passed through."""
        return {"null_rows": self._num_rows}


def raise_staged_error(staged: StagedRow) -> None:
    """Trouble that planning found in a row, as an exception."""
    if staged.error_class is not None:
        raise RowError(staged.error_class, staged.error_message or "no message")


def decoded_output(
    result: SampleResult,
    *,
    text: str,
    token_ids: tuple[int, ...],
    finish_reason: FinishReason,
) -> OutputSample:
    """A finished sample as an output row, with its trace aligned to the tokens that are left."""
    request, trace = result.request, result.trace
    return OutputSample(
        shard=request.shard,
        row=request.row,
        sample=request.sample,
        key=request.key,
        text=text,
        token_ids=token_ids,
        finish_reason=finish_reason,
        tokens_with_stop=result.tokens_with_stop,
        prompt_tokens=len(request.prompt_ids),
        nfe=result.nfe,
        nfe_prefill=result.nfe_prefill,
        nfe_store=result.nfe_store,
        transitions=result.transitions,
        rounds=result.rounds,
        drafted=result.drafted,
        accepted=result.accepted,
        positions=result.positions,
        tied=result.tied,
        wall_s=result.wall_s,
        queue_s=result.queue_s,
        token_trace=(
            None if trace is None else trace.of_tokens(len(request.prompt_ids), len(token_ids))
        ),
        trace=trace,
    )


def failed_output(result: SampleResult, *, error: RowError) -> OutputSample:
    """A decoded sample whose text cannot be made; what it cost goes with the lost text."""
    request = result.request
    return OutputSample(
        shard=request.shard,
        row=request.row,
        sample=request.sample,
        key=request.key,
        error_class=error.error_class,
        error_message=error.message,
    )
