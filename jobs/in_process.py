"""Decoding a job's rows in this process, under an observer: calibration and diagnostics.

Nothing is planned or stored. Noise is that of `seed.scope: row`, whatever the job says, so that a
sample does not depend on which others are decoded. The temperature is always that of the settings.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from jobs.errors import JobError
from jobs.inputs.reading import read_rows
from manifests.hashing import hash64
from manifests.job import JobSpec
from spot.drafters.base import Drafter
from spot.training.train import HELD_OUT_EVERY
from workers.budget import FixedBudget
from workers.engine import Observer
from workers.errors import RowError
from workers.model_files import fetched_models
from workers.runtime import load_parts, make_engine
from workers.samples import SampleRequest, SampleResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """What decoding some rows gave."""

    results: list[SampleResult]
    seconds: float


class InProcess:
    """A job's target and prompts, loaded once."""

    def __init__(
        self,
        job: JobSpec,
        *,
        samples: int,
        held_out: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take the first ``samples`` rows that can be decoded; with ``held_out`` only those that
        training on a collection of the job holds out.

        Raises:
            JobError: there is no such row.
        """
        self._clock = clock
        self.target, self._tokenization = load_parts(fetched_models(job))
        self.mask_id = self.target.spec.mask_id
        self.requests = list(islice(self._requests(job, held_out=held_out), samples))
        if not self.requests:
            raise JobError(
                f"input.uri {', '.join(job.input.uris)}: no row can be decoded here; give other "
                "rows" + (f", or at least {HELD_OUT_EVERY} without --held-out" if held_out else "")
            )

    def _requests(self, job: JobSpec, *, held_out: bool) -> Iterator[SampleRequest]:
        for row in read_rows(job):
            if row.error_class is not None or (held_out and row.row % HELD_OUT_EVERY):
                continue
            try:
                prompt_ids = self._tokenization.encode(row)
            except RowError:
                continue
            yield SampleRequest(
                shard=0,
                row=row.row,
                sample=0,
                prompt_ids=prompt_ids,
                key=hash64("row", job.seed.value if row.seed is None else row.seed, row.id, 0),
                max_tokens=row.max_tokens or job.decode.max_tokens,
            )

    def decode(
        self,
        job: JobSpec,
        requests: Sequence[SampleRequest],
        *,
        drafter: Drafter | None = None,
        budget: int = 0,
        observer: Observer | None = None,
        report: Callable[[str], None] | None = None,
    ) -> Decoding:
        """Decode requests under a job's settings, which may differ from those loaded with.

        ``report`` gets a line whenever samples are finished.
        """
        engine = make_engine(
            job, self.target, drafter=drafter, budget=FixedBudget(budget), observer=observer
        )
        for request in requests:
            engine.add(request)
        results: list[SampleResult] = []
        began = self._clock()
        while engine.has_work():
            finished = engine.step()
            results += finished
            if finished and report is not None:
                report(f"{len(results)} of {len(requests)} samples")
        return Decoding(results=results, seconds=self._clock() - began)


def with_decode(job: JobSpec, **settings: object) -> JobSpec:
    """The job under other decode settings.

    Raises:
        ValueError: they do not go together.
    """
    decode = type(job.decode).model_validate(job.decode.model_dump() | settings)
    return job.model_copy(update={"decode": decode})
