"""Stand-ins for decoding: an engine whose tokens are a function of the sample key."""

from collections import deque
from collections.abc import Sequence

from manifests.staged import StagedRow
from workers.errors import RowError
from workers.samples import CommitTrace, FinishReason, SampleRequest, SampleResult

PROMPT_IDS = (7, 8, 9)


def result_of(request: SampleRequest, *, num_tokens: int = 2, traced: bool = False) -> SampleResult:
    """What the fake engine makes of a request: tokens from its key, committed right to left."""
    token_ids = tuple((request.key >> (8 * index)) % 50 for index in range(num_tokens))
    first = len(request.prompt_ids)
    order = list(reversed(range(num_tokens)))
    trace = CommitTrace(
        positions=tuple(first + index for index in order),
        tokens=tuple(token_ids[index] for index in order),
        steps=tuple(range(num_tokens)),
        log_probabilities=tuple(-0.25 * step for step in range(num_tokens)),
        confidences=tuple(-0.5 * step for step in range(num_tokens)),
    )
    return SampleResult(
        request=request,
        token_ids=token_ids,
        finish_reason="stop",
        tokens_with_stop=num_tokens + 1,
        nfe=3,
        nfe_prefill=1,
        nfe_store=0,
        transitions=4,
        rounds=3,
        drafted=5,
        accepted=1,
        positions=96,
        tied=0,
        wall_s=0.5,
        queue_s=0.25,
        trace=trace if traced else None,
    )


class FakeEngine:
    """Finishes the two youngest samples a step, so that results come out of order."""

    def __init__(self, *, traced: bool = False) -> None:
        self.requests: list[SampleRequest] = []
        self._waiting: deque[SampleRequest] = deque()
        self._num_forwards = 0
        self._traced = traced

    def add(self, request: SampleRequest) -> None:
        self.requests.append(request)
        self._waiting.append(request)

    def step(self) -> list[SampleResult]:
        if self._waiting:
            self._num_forwards += 1
        finished = [self._waiting.pop() for _ in range(min(2, len(self._waiting)))]
        return [result_of(request, traced=self._traced) for request in finished]

    def has_work(self) -> bool:
        return bool(self._waiting)

    def counters(self) -> dict[str, int]:
        return {"forwards": self._num_forwards}


class FakeRuntime:
    """A runtime without a model; prompts that say so are refused or crash."""

    dtype = "float32"

    def __init__(self, *, traced: bool = False) -> None:
        self.engine = FakeEngine(traced=traced)

    def encode(self, row: StagedRow) -> tuple[int, ...]:
        if row.prompt == "too long":
            raise RowError("PromptTooLong", "the prompt has 9 tokens, the limit is 8")
        if row.prompt == "crash":
            raise KeyError("template")
        return PROMPT_IDS

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(chr(97 + token % 26) for token in token_ids)

    def finish(self, result: SampleResult) -> tuple[str, tuple[int, ...], FinishReason]:
        return self.decode(result.token_ids), result.token_ids, result.finish_reason
