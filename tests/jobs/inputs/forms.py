"""The same rows in every form that an input can have."""

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.inputs.openai_batch import URL

Row = dict[str, str]
Source = dict[str, Any]
COLUMNS = {"id": "key", "prompt": "question"}


def rows(count: int) -> list[Row]:
    """Rows with all that text may hold."""
    return [
        {"key": f"r{i}", "question": f'What is {i} + "{i}"?\nSay é, {i % 7}.'} for i in range(count)
    ]


def _lines(values: Sequence[object]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def _jsonl(folder: Path, made: list[Row]) -> Source:
    path = folder / "p.jsonl"
    path.write_bytes(_lines(made))
    return {"input": {"uri": str(path), "columns": COLUMNS}}


def _gzip(folder: Path, made: list[Row]) -> Source:
    path = folder / "p.jsonl.gz"
    path.write_bytes(gzip.compress(_lines(made)))
    return {"input": {"uri": str(path), "columns": COLUMNS}}


def _zstd(folder: Path, made: list[Row]) -> Source:
    path = folder / "p.jsonl.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(_lines(made))
    return {"input": {"uri": str(path), "columns": COLUMNS}}


def _parquet(folder: Path, made: list[Row]) -> Source:
    path = folder / "p.parquet"
    pq.write_table(pa.Table.from_pylist(made), path, row_group_size=300)
    return {"input": {"uri": str(path), "columns": COLUMNS}}


def _csv(folder: Path, made: list[Row], *, delimiter: str = ",") -> Source:
    path = folder / ("p.csv" if delimiter == "," else "p.tsv")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(COLUMNS.values()), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(made)
    return {"input": {"uri": str(path), "columns": COLUMNS}}


def _tsv(folder: Path, made: list[Row]) -> Source:
    return _csv(folder, made, delimiter="\t")


def _openai(folder: Path, made: list[Row]) -> Source:
    def request(row: Row) -> dict[str, Any]:
        messages = [{"role": "user", "content": row["question"]}]
        body = {"model": "m", "messages": messages}
        return {"custom_id": row["key"], "method": "POST", "url": URL, "body": body}

    path = folder / "batch.jsonl"
    path.write_bytes(_lines([request(row) for row in made]))
    return {"input": {"uri": str(path), "format": "openai"}}


def _dataset(folder: Path, made: list[Row]) -> Source:
    path = folder / "saved"
    path.mkdir()
    half = len(made) // 2
    names: list[str] = []
    for part in (made[:half], made[half:]):
        names.append(f"data-{len(names):05d}-of-00002.arrow")
        table = pa.Table.from_pylist(part)
        with pa.ipc.new_stream(path / names[-1], table.schema) as writer:
            writer.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names]}
    (path / "state.json").write_text(json.dumps(state))
    return {"input": {"uri": str(path), "columns": COLUMNS}}


def _glob(folder: Path, made: list[Row]) -> Source:
    for number, start in enumerate(range(0, len(made), 7)):
        (folder / f"part-{number:04d}.jsonl").write_bytes(_lines(made[start : start + 7]))
    return {"input": {"uri": f"{folder}/part-*.jsonl", "columns": COLUMNS}}


def _list(folder: Path, made: list[Row]) -> Source:
    third = len(made) // 3
    for name in ("a", "b", "c"):
        (folder / name).mkdir()
    sources = [
        _parquet(folder / "a", made[:third]),
        _csv(folder / "b", made[third : 2 * third]),
        _gzip(folder / "c", made[2 * third :]),
    ]
    return {"input": {"uri": [s["input"]["uri"] for s in sources], "columns": COLUMNS}}


def _messages(folder: Path, made: list[Row]) -> Source:
    values = [
        {"key": row["key"], "chat": [{"role": "user", "content": row["question"]}]} for row in made
    ]
    path = folder / "chat.parquet"
    pq.write_table(pa.Table.from_pylist(values), path)
    return {"input": {"uri": str(path), "columns": {"id": "key", "messages": "chat"}}}


def _template(folder: Path, made: list[Row]) -> Source:
    values = []
    for row in made:
        first, _, rest = row["question"].partition("\n")
        values.append({"key": row["key"], "first": first, "rest": rest})
    path = folder / "parts.jsonl"
    path.write_bytes(_lines(values))
    return {
        "input": {"uri": str(path), "columns": {"id": "key"}},
        "prompt": {"template": "{first}\n{rest}"},
    }


FORMS: dict[str, Callable[[Path, list[Row]], Source]] = {
    "jsonl": _jsonl,
    "gzip": _gzip,
    "zstd": _zstd,
    "parquet": _parquet,
    "csv": _csv,
    "tsv": _tsv,
    "openai": _openai,
    "dataset": _dataset,
    "glob": _glob,
    "list": _list,
    "messages": _messages,
    "template": _template,
}
