"""Which files an input is, in which order, and what their rows are called."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.inputs.files import find_files, input_name
from manifests.errors import InputError
from tests.jobs.inputs.support import job_over


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")


def labels(*uris: str, **source: Any) -> list[str]:
    return [file.label for file in find_files(job_over(uris, **source).input)]


def test_a_file_is_called_by_its_name(tmp_path: Path) -> None:
    touch(tmp_path, "p.jsonl")
    assert labels(f"{tmp_path}/p.jsonl") == ["p.jsonl"]


def test_the_files_of_a_glob_come_by_name_and_are_called_from_its_fixed_part_on(
    tmp_path: Path,
) -> None:
    touch(tmp_path, "b/2.jsonl", "b/1.jsonl", "a/1.jsonl", "a/x.txt")
    assert labels(f"{tmp_path}/*/*.jsonl") == ["a/1.jsonl", "b/1.jsonl", "b/2.jsonl"]


def test_a_list_keeps_its_order(tmp_path: Path) -> None:
    touch(tmp_path, "a.jsonl", "b.jsonl", "c/1.jsonl")
    uris = [f"{tmp_path}/{name}" for name in ("b.jsonl", "c/*.jsonl", "a.jsonl")]
    assert labels(*uris) == ["b.jsonl", "1.jsonl", "a.jsonl"]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(tmp_path: Path) -> None:
    touch(tmp_path, "a[1].jsonl", "a1.jsonl")
    assert labels(f"{tmp_path}/a[1].jsonl") == ["a[1].jsonl"]


@pytest.mark.parametrize(
    ("name", "format_", "found"),
    [
        ("a.jsonl", "auto", ("jsonl", None)),
        ("a.ndjson.gz", "auto", ("jsonl", "gzip")),
        ("a.csv.zst", "auto", ("csv", "zstd")),
        ("a.tsv", "auto", ("tsv", None)),
        ("a.tsv", "csv", ("tsv", None)),
        ("a.parquet", "auto", ("parquet", None)),
        ("a.txt", "jsonl", ("jsonl", None)),
        ("a", "parquet", ("parquet", None)),
        ("a.jsonl", "openai", ("jsonl", None)),
    ],
)
def test_the_format_goes_by_the_name_unless_it_is_set(
    tmp_path: Path, name: str, format_: str, found: tuple[str, str | None]
) -> None:
    touch(tmp_path, name)
    (file,) = find_files(job_over(tmp_path / name, format=format_).input)
    assert (file.format, file.compression) == found


@pytest.mark.parametrize(
    ("uris", "words"),
    [
        (["absent.jsonl"], r"absent\.jsonl: there is no such file"),
        (["*.parquet"], r"\*\.parquet: no file matches"),
        (["empty.jsonl"], "the file is empty"),
        (["prompts.txt"], r"must end in one of \.jsonl, .*or set input\.format"),
        (["a.parquet.gz"], "Parquet is compressed inside"),
        (["a.jsonl", "a.jsonl"], "the file is listed twice"),
        (["a.jsonl", "*.jsonl"], "the file is listed twice"),
        (["a.jsonl", "sub/a.jsonl"], r"two files are called a\.jsonl, .* name an id column"),
        (["sub"], r"is a directory, and not a saved dataset; .* sub/\*\.jsonl"),
    ],
)
def test_an_input_that_cannot_be_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uris: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    touch(tmp_path, "a.jsonl", "sub/a.jsonl", "prompts.txt", "a.parquet.gz")
    (tmp_path / "empty.jsonl").touch()
    if "*.jsonl" in uris:
        (tmp_path / "empty.jsonl").unlink()
    with pytest.raises(InputError, match=words):
        find_files(job_over(uris).input)


def test_two_files_of_one_name_are_taken_with_an_id_column(tmp_path: Path) -> None:
    touch(tmp_path, "a.jsonl", "sub/a.jsonl")
    uris = [f"{tmp_path}/a.jsonl", f"{tmp_path}/sub/a.jsonl"]
    assert labels(*uris, columns={"id": "k"}) == ["a.jsonl", "a.jsonl"]


def test_the_name_of_an_input_leaves_directories_out() -> None:
    assert input_name(job_over(["/x/a.jsonl", "/y/*.csv"]).input) == "a.jsonl, *.csv"


def saved_dataset(folder: Path, state: str) -> Path:
    folder.mkdir()
    (folder / "state.json").write_text(state)
    table = pa.table({"prompt": ["a"]})
    with pa.ipc.new_stream(folder / "data.arrow", table.schema) as writer:
        writer.write_table(table)
    return folder


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "does not hold a JSON object"),
        ('{"_data_files": [{"filename": "other.arrow"}]}', r"its file other\.arrow is missing"),
        ('{"_data_files": [{"filename": "../d/data.arrow"}]}', "is missing"),
        ('{"_indices_data_files": [{"filename": "i"}]}', "save it again, flattened"),
    ],
)
def test_a_damaged_saved_dataset_is_refused(tmp_path: Path, state: str, words: str) -> None:
    folder = saved_dataset(tmp_path / "d", state)
    with pytest.raises(InputError, match=words):
        find_files(job_over(folder).input)


def test_a_saved_dataset_of_another_format_is_refused(tmp_path: Path) -> None:
    folder = saved_dataset(tmp_path / "d", '{"_data_files": [{"filename": "data.arrow"}]}')
    with pytest.raises(InputError, match=r"input\.format is csv; set it to dataset"):
        find_files(job_over(folder, format="csv").input)
    assert [file.label for file in find_files(job_over(folder).input)] == ["d/data.arrow"]


def test_a_directory_of_splits_names_them(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(InputError, match=r"holds the splits train, test; name one, as in .*/train"):
        find_files(job_over(tmp_path).input)
