"""Collecting trajectories for drafter training: draft-free decoding with a recording drafter."""

from collections.abc import Sequence
from pathlib import Path

from manifests.hashing import hash64
from manifests.job import JobSpec
from manifests.staged import StagedRow
from spot.training.trajectories import Recorder, assemble
from workers.budget import FixedBudget
from workers.errors import RowError
from workers.runtime import load_parts, make_engine
from workers.samples import SampleRequest


class Collector:
    """Holds a loaded target; writes one file per group of rows."""

    def __init__(self, job: JobSpec) -> None:
        # the trace carries the order of commits, which is the label
        self._job = job.model_copy(
            update={"output": job.output.model_copy(update={"trace": "commits"})}
        )
        self._target, self._tokenization = load_parts(self._job)
        self._recorder = Recorder(mask_id=self._target.spec.mask_id)
        self._engine = make_engine(
            self._job, self._target, drafter=self._recorder, budget=FixedBudget(1)
        )

    @property
    def block_length(self) -> int:
        """Of the target."""
        return self._target.spec.block_length

    def collect(self, rows: Sequence[StagedRow], *, first: int, path: Path) -> int:
        """Decode rows and save their trajectories; returns how many rows could be decoded.

        Args:
            rows: staged rows.
            first: number of the first row, which numbers the samples.
            path: the safetensors file to write; it appears whole or not at all.
        """
        for offset, row in enumerate(rows):
            self._add(row, first + offset)
        samples = []
        while self._engine.has_work():
            for result in self._engine.step():
                assert result.trace is not None, "collection is always traced"
                roots = self._recorder.take(result.request.key)
                samples.append((result.request.row, roots, list(result.trace.positions)))
        samples.sort()
        if any(roots for _, roots, _ in samples):  # a sample of one commit a block has none
            partial = path.with_name(f".{path.name}.partial")
            assemble(samples, length=self.block_length).save(partial)
            partial.replace(path)
        return len(samples)

    def _add(self, row: StagedRow, number: int) -> None:
        if row.error_class is not None:
            return
        try:
            prompt_ids = self._tokenization.encode(row)
        except RowError:
            return  # too long for the target: nothing to learn from
        request = SampleRequest(
            shard=0,
            row=number,
            sample=0,
            prompt_ids=prompt_ids,
            key=hash64("collect", self._job.seed.value, number),
            max_tokens=self._job.decode.max_tokens,
        )
        self._engine.add(request)
