"""Single samples of a job with their prompts and what they cost."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.plain_text import printable
from jobs.reading import OpenJob, read_committed
from manifests.committed import committed_rows
from manifests.staged import StagedRow, read_shard

COLUMNS = (
    *("id", "sample", "shard", "row", "attempt", "finish_reason", "tokens", "nfe", "transitions"),
    *("drafted", "accepted", "wall_s", "error_class", "error_message", "text"),
)
_TEXT_CHARACTERS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which samples are looked at; all conditions hold together."""

    errors: bool = False
    """Only error rows."""
    finish_reason: str | None = None
    ids: Collection[str] | None = None
    shards: Collection[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedSample:
    """One committed sample."""

    values: dict[str, Any]
    """Its columns, `COLUMNS`."""
    prompt: str | None
    """Prompt text or messages (JSON), as staged."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**self.values, "prompt": self.prompt}

    def lines(self) -> list[str]:
        """A heading with figures, the prompt and the text or the error."""
        v = self.values
        head = f"--- {printable(v['id'])} sample {v['sample']} (shard {v['shard']}, row {v['row']})"
        if v["error_class"] is not None:
            told = f"{v['error_class']}: {printable(v['error_message'] or '')}"
        else:
            head += (
                f": {v['finish_reason']}, {v['tokens']} tokens, {v['nfe']} forwards "
                f"(draft-free {v['transitions']}), {v['wall_s']:.2f} s"
            )
            told = printable(v["text"], limit=_TEXT_CHARACTERS)
        return [head, printable(self.prompt or "", limit=_TEXT_CHARACTERS), ">>>", told]


def inspect_samples(job: OpenJob, choice: Choice) -> Iterator[InspectedSample]:
    """The chosen samples in input order; files are read one at a time, as far as is asked for."""
    records = read_committed(job).records
    if choice.shards is not None:
        records = {shard: records[shard] for shard in sorted(records) if shard in choice.shards}
    for shard in sorted(records):
        one = {shard: records[shard]}
        for table in committed_rows(job.store, job.plan, one, columns=COLUMNS):
            yield from _samples(job, shard, table=_chosen(table, choice))


def _chosen(table: pa.Table, choice: Choice) -> pa.Table:
    if choice.errors:
        table = table.filter(pc.is_valid(table["error_class"]))
    if choice.finish_reason is not None:
        table = table.filter(pc.equal(table["finish_reason"], choice.finish_reason))
    if choice.ids is not None:
        wanted = pa.array(list(choice.ids), type=table["id"].type)
        table = table.filter(pc.is_in(table["id"], value_set=wanted))
    return table


def _samples(job: OpenJob, shard: int, *, table: pa.Table) -> Iterator[InspectedSample]:
    if table.num_rows == 0:
        return
    staged = read_shard(job.store, job.plan, shard)
    for values in table.to_pylist():
        yield InspectedSample(values=values, prompt=_prompt(staged[values["row"]]))


def _prompt(row: StagedRow) -> str | None:
    return row.prompt if row.prompt is not None else row.messages
