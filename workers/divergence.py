"""How often company changed an output: a share of the finished samples is decoded again, alone.

Where numerics keep no promise (`fast`, or half precision), batching and drafts may change a
sample's last bits and through them its tokens. The rate is measured then instead of promised. Which
samples are decoded again follows from their keys alone, so a rerun measures the same ones.
"""

from collections.abc import Callable

from spot.limits import Limits
from spot.rounds import Sample
from workers.references import Decoder
from workers.samples import SampleRequest, SampleResult
from workers.work import Engine

Replay = Callable[[SampleRequest], tuple[int, ...]]
GOLDEN = 0x9E3779B97F4A7C15  # odd, so multiplication mixes keys that differ in few bits


def is_chosen(key: int, *, share: float) -> bool:
    """Whether the sample of a 64-bit key belongs to a share of all samples."""
    return (key * GOLDEN) % 2**64 < share * 2**64


def draft_free(
    decoder: Callable[[SampleRequest], Decoder], limits: Callable[[SampleRequest], Limits]
) -> Replay:
    """Decoding of one sample alone, without drafts and under its own rule: its definition."""

    def replay(request: SampleRequest) -> tuple[int, ...]:
        sample = Sample(prompt_ids=request.prompt_ids, key=request.key, limits=limits(request))
        return decoder(request).decode(sample).token_ids

    return replay


class ReplayingEngine:
    """An engine that measures its divergence as it goes."""

    def __init__(self, engine: Engine, *, replay: Replay, share: float) -> None:
        self._engine, self._replay, self._share = engine, replay, share
        self._replayed = self._diverged = 0

    def add(self, request: SampleRequest) -> None:
        """Queue one sample."""
        self._engine.add(request)

    def step(self) -> list[SampleResult]:
        """One round; chosen samples that it finished are decoded again."""
        results = self._engine.step()
        for result in results:
            if is_chosen(result.request.key, share=self._share):
                self._replayed += 1
                self._diverged += self._replay(result.request) != result.token_ids
        return results

    def has_work(self) -> bool:
        """Whether a sample waits or is being decoded."""
        return self._engine.has_work()

    def counters(self) -> dict[str, int]:
        """The engine's, with the samples that were decoded again and those that differed."""
        return self._engine.counters() | {"replayed": self._replayed, "diverged": self._diverged}
