"""The samples of one attempt at one shard, collected in any order and handed out in input order.

Samples arrive as the engine finishes them. An assembly is complete when every (row, sample) pair
that the attempt decodes is there exactly once: rows x n of them, unless a revision chooses some
rows and copies the others. It never invents, replaces or drops one.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from manifests.plan import ShardPlan
from manifests.staged import StagedRow
from workers.errors import AssemblyError
from workers.samples import OutputSample


@dataclass(slots=True, kw_only=True)
class ShardAssembly:
    """One attempt's samples; `add` until `is_complete`, then read `in_order`."""

    shard: ShardPlan
    attempt: str
    rows: Sequence[StagedRow]
    num_samples: int
    """Samples per row."""
    chosen: Set[int] | None = None
    """Indices of the rows that are decoded; None: all."""
    notice: Callable[[OutputSample], None] | None = None
    """Told of every sample that is taken."""
    _samples: dict[tuple[int, int], OutputSample] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.rows) != self.shard.rows:
            raise AssemblyError(
                f"shard {self.shard.shard} has {len(self.rows)} staged rows, the plan says "
                f"{self.shard.rows}; the staged input is damaged"
            )

    @property
    def decoded_rows(self) -> list[StagedRow]:
        """The rows that are decoded, in input order."""
        return [row for index, row in enumerate(self.rows) if self._decodes(index)]

    def _decodes(self, index: int) -> bool:
        known = 0 <= index < len(self.rows)
        return known and (self.chosen is None or index in self.chosen)

    @property
    def num_expected(self) -> int:
        """Rows that are decoded x samples per row."""
        num_rows = len(self.rows) if self.chosen is None else len(self.chosen)
        return num_rows * self.num_samples

    @property
    def num_collected(self) -> int:
        """Samples so far."""
        return len(self._samples)

    @property
    def is_complete(self) -> bool:
        """Whether every sample is there."""
        return self.num_collected == self.num_expected

    def add(self, sample: OutputSample) -> None:
        """Take one sample; a foreign or repeated one is an error."""
        place = (sample.row, sample.sample)
        known = self._decodes(sample.row) and 0 <= sample.sample < self.num_samples
        if sample.shard != self.shard.shard or not known:
            raise AssemblyError(
                f"shard {self.shard.shard} was given a sample of shard {sample.shard}, "
                f"row {sample.row}, sample {sample.sample}, which it does not have"
            )
        if place in self._samples:
            raise AssemblyError(
                f"shard {self.shard.shard} was given row {sample.row}, sample {sample.sample} twice"
            )
        self._samples[place] = sample
        if self.notice is not None:
            self.notice(sample)

    def in_order(self) -> list[OutputSample]:
        """All samples, rows in input order and samples ascending within a row."""
        if not self.is_complete:
            raise AssemblyError(
                f"shard {self.shard.shard} has {self.num_collected} samples "
                f"of {self.num_expected}; it cannot be written yet"
            )
        return [self._samples[place] for place in sorted(self._samples)]
