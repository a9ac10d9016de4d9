"""Which files an input is: lists, globs and directories become files in one fixed order."""

import glob
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal

from jobs.inputs.in_s3 import find_objects
from manifests.errors import InputError
from manifests.job_input import Input, InputFormat
from manifests.job_running import Storage
from manifests.store import is_s3

FileFormat = Literal["jsonl", "parquet", "csv", "tsv", "arrow"]
Compression = Literal["gzip", "zstd"]

_FORMATS: dict[str, FileFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
}
_DELIMITED: frozenset[FileFormat] = frozenset({"csv", "tsv"})
_COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_ANY_STORAGE = Storage()
_DATASET_STATE = "state.json"
_DATASET_SPLITS = "dataset_dict.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One file, and how it is read."""

    uri: str
    """Where it is."""
    label: str
    """Its name in ids and messages; the same wherever the input as a whole is moved to."""
    format: FileFormat
    compression: Compression | None = None
    storage: Storage = _ANY_STORAGE
    """How it is reached, if it is in S3."""
    delimiter: str | None = None
    """What divides its fields, if it is CSV; None for tables that say it by their name."""

    @property
    def field_delimiter(self) -> str:
        """What divides the fields of CSV."""
        return self.delimiter or ("\t" if self.format == "tsv" else ",")


def find_files(source: Input, storage: Storage | None = None) -> list[InputFile]:
    """The files of an input in order; `InputError` if one is missing, doubled or of no use."""
    storage = storage or Storage()
    found = [file for uri in source.uris for file in _expand(uri, source.format, storage)]
    files = _delimited(found, source.delimiter)
    repeated = [uri for uri, count in Counter(file.uri for file in files).items() if count > 1]
    if repeated:
        raise InputError(f"input.uri {repeated[0]}: the file is listed twice; list it once")
    labels = Counter(file.label for file in files)
    same = next((label for label, count in labels.items() if count > 1), None)
    if same is not None and source.columns.id is None and source.format != "openai":
        raise InputError(
            f"input.uri: two files are called {same}, so ids made from file and row would not be "
            "unique; name an id column (input.columns.id), or use one glob for both"
        )
    return files


def _delimited(files: list[InputFile], delimiter: str | None) -> list[InputFile]:
    if delimiter is None:
        return files
    if not any(file.format in _DELIMITED for file in files):
        raise InputError(
            f"input.delimiter: no file of the input is CSV ({files[0].label} is "
            f"{files[0].format}); remove it, or set input.format to csv"
        )
    return [
        replace(file, delimiter=delimiter) if file.format in _DELIMITED else file for file in files
    ]


def input_name(source: Input) -> str:
    """A short name of an input, for records about what was made from it."""
    return ", ".join(uri.rstrip("/").rpartition("/")[2] for uri in source.uris)


def _expand(uri: str, format_: InputFormat, storage: Storage) -> Iterator[InputFile]:
    path = Path(uri)
    if is_s3(uri):
        for found in find_objects(uri, storage):
            yield replace(_described(*found, format_=format_), storage=storage)
    elif "://" in uri:
        raise InputError(f"input.uri {uri}: name local files, or s3://bucket/key")
    elif path.is_dir():
        yield from _dataset_files(path, format_)
    elif glob.has_magic(uri) and not path.exists():
        yield from _matches(uri, format_)
    else:
        yield _file(path, label=path.name, format_=format_)


def _matches(pattern: str, format_: InputFormat) -> Iterator[InputFile]:
    found = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
    files = [path for path in found if path.is_file()]
    if not files:
        raise InputError(f"input.uri {pattern}: no file matches; write the glob as data/*.jsonl")
    fixed = _fixed_parent(pattern)
    for path in files:
        yield _file(path, label=path.relative_to(fixed).as_posix(), format_=format_)


def _fixed_parent(pattern: str) -> Path:
    """The directory above the first part of a glob that matches anything."""
    parts = Path(pattern).parts
    count = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:count])


def _file(path: Path, *, label: str, format_: InputFormat) -> InputFile:
    if not path.exists():
        raise InputError(f"input.uri {path}: there is no such file")
    if not path.is_file():
        raise InputError(f"input.uri {path}: this is not a file; name a file with rows")
    return _described(str(path), label, path.stat().st_size, format_=format_)


def _described(uri: str, label: str, num_bytes: int, *, format_: InputFormat) -> InputFile:
    """What a file that is there is, by its name and the job's word."""
    name = PurePath(uri)
    if num_bytes == 0:
        raise InputError(f"input.uri {uri}: the file is empty; it needs at least one row")
    if format_ == "dataset":
        raise InputError(
            f"input.uri {uri}: input.format dataset is a local directory made by `save_to_disk`; "
            "name the directory, or set input.format to auto"
        )
    compression = _COMPRESSIONS.get(name.suffix)
    inner = name.with_suffix("") if compression else name
    named = _format(inner, shown=uri, format_=format_)
    if named == "parquet" and compression is not None:
        raise InputError(f"input.uri {uri}: Parquet is compressed inside; unpack the file")
    return InputFile(uri=uri, label=label, format=named, compression=compression)


def _format(path: PurePath, *, shown: str, format_: InputFormat) -> FileFormat:
    by_name = _FORMATS.get(path.suffix)
    if format_ == "csv":
        return "tsv" if by_name == "tsv" else "csv"
    if format_ in ("jsonl", "openai"):
        return "jsonl"
    if format_ == "parquet":
        return "parquet"
    if by_name is None:
        raise InputError(
            f"input.uri {shown}: the name must end in one of {', '.join(_FORMATS)} (text also in "
            ".gz or .zst); rename the file, or set input.format"
        )
    return by_name


def _dataset_files(path: Path, format_: InputFormat) -> Iterator[InputFile]:
    if (path / _DATASET_SPLITS).is_file():
        splits = _read(path / _DATASET_SPLITS).get("splits", [])
        raise InputError(
            f"input.uri {path}: it holds the splits {', '.join(map(str, splits))}; name one, as in "
            f"{path / str(next(iter(splits), 'train'))}"
        )
    if not (path / _DATASET_STATE).is_file():
        raise InputError(
            f"input.uri {path}: this is a directory, and not a saved dataset; name its files with "
            f"a glob, as in {path}/*.jsonl"
        )
    if format_ not in ("auto", "dataset"):
        raise InputError(
            f"input.uri {path}: this is a saved dataset, and input.format is {format_}; set it to "
            "dataset"
        )
    state = _read(path / _DATASET_STATE)
    if state.get("_indices_data_files"):
        raise InputError(f"input.uri {path}: its rows are only indices; save it again, flattened")
    for entry in state.get("_data_files", []):
        name = str(entry["filename"])
        if Path(name).name != name or not (path / name).is_file():
            raise InputError(f"input.uri {path}: its file {name} is missing; save it again")
        yield InputFile(uri=str(path / name), label=f"{path.name}/{name}", format="arrow")


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"input.uri {path}: it cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"input.uri {path}: it does not hold a JSON object; save it again")
    return value
