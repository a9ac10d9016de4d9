"""What an export says about itself: `_SUCCESS.json`, put last, so that it means all is there.

The layout of an export is a function of the seal and of the size asked for. Its files carry the
seal in their names; an export that is begun again therefore finds its own files, and one of
another seal is never mixed with it.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from manifests.documents import Document, encode
from manifests.hashing import sha256_hex
from manifests.records import Count, Seal, SealedShard, Sha256

SUCCESS_KEY = "_SUCCESS.json"


class ExportedFile(Document):
    """One file of an export."""

    key: str
    rows: Count  # output rows, or lines of a text file
    bytes: Count
    sha256: Sha256


class Export(Document):
    """A complete export."""

    version: Literal[1] = 1
    job_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    revision: Count
    seal_sha256: Sha256
    rows: Count  # output rows: samples
    ok: Count
    errors: Count
    files: tuple[ExportedFile, ...]


class ExportedPart(Document):
    """Consecutive shards that make one file."""

    key: str
    shards: tuple[SealedShard, ...]

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return sum(shard.samples for shard in self.shards)


def seal_digest(seal: Seal) -> str:
    """SHA-256 of a seal's stored bytes."""
    return sha256_hex(encode(seal))


def export_parts(seal: Seal, *, rows_per_file: int | None) -> list[ExportedPart]:
    """The files of an export, in input order: one, or as many as a number of rows makes.

    A file ends with the shard that reaches the number, so that no shard is divided.
    """
    digest = sha256_hex(f"{seal_digest(seal)} {rows_per_file}".encode())[:12]
    return [
        ExportedPart(key=f"part-{index:05d}-{digest}.parquet", shards=tuple(shards))
        for index, shards in enumerate(_runs(seal, rows_per_file=rows_per_file))
    ]


def openai_keys(seal: Seal) -> tuple[str, str]:
    """The files of an export as OpenAI batch output: the answers, and the errors."""
    digest = sha256_hex(f"{seal_digest(seal)} openai".encode())[:12]
    return f"output-{digest}.jsonl", f"errors-{digest}.jsonl"


def _runs(seal: Seal, *, rows_per_file: int | None) -> Iterator[list[SealedShard]]:
    run: list[SealedShard] = []
    for shard in seal.shards:
        run.append(shard)
        if rows_per_file is not None and sum(each.samples for each in run) >= rows_per_file:
            yield run
            run = []
    if run:
        yield run
