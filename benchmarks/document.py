"""The result file: one machine and many rows, read and written without torch."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

Protocol = Literal["early_stop", "ignore_eos"]
"""``early_stop`` ends a sample at its stop id; ``ignore_eos`` always decodes every position."""

Options = dict[str, bool | int | float | str]


class DocumentError(ValueError):
    """A result or page cannot be used; the message names the file and the remedy."""


class Machine(BaseModel):
    """Where it was measured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    processor: str
    cores: int
    memory_gib: float
    torch: str
    threads: int
    date: str


class Row(BaseModel):
    """One setting and what it cost; numbers are means over its samples.

    A sample's forwards and transitions are kept, so that settings can be compared on the samples
    that they share. ``wall_ratio`` above 1 is faster than draft-free decoding, one sample at a
    time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Protocol
    rule: Literal["strict", "threshold"]
    tau: float | None
    temperature: float
    method: str
    budget: int
    options: Options
    samples: int
    nfe: float
    transitions: float
    reduction: float  # transitions / nfe
    accepted_per_round: float
    positions: float
    wall_ratio: float | None = None
    drafter_seconds_share: float | None = None
    identical: bool  # every sample's trajectory is the draft-free one
    gamma: float  # mass floor in force
    store_forwards: float  # forwards that only stored a block; in no ratio
    sample_nfe: tuple[int, ...]
    sample_transitions: tuple[int, ...]


class Document(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: Machine
    rows: tuple[Row, ...]


def write_document(document: Document, path: Path) -> None:
    """Write it with one line to a row."""
    rows = ",\n".join(row.model_dump_json() for row in document.rows)
    text = f'{{"machine": {document.machine.model_dump_json()},\n"rows": [\n{rows}\n]}}\n'
    path.write_text(text, encoding="utf-8")


def read_document(path: Path) -> Document:
    """Read and check it.

    Raises:
        DocumentError: missing, or not of this format.
    """
    if not path.is_file():
        raise DocumentError(f"{path} is missing: make it with `python -m benchmarks.decoding`")
    try:
        return Document.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DocumentError(
            f"{path} is not a benchmark result ({where}: {first['msg']}): measure again"
        ) from None
