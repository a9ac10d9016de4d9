"""The layout of exports: a function of the seal and of the size asked for."""

import pytest

from manifests.export import export_parts, openai_keys, seal_digest
from manifests.protocol import read_seal
from manifests.records import Seal
from tests.manifests.builders import StoredJob


@pytest.fixture
def seal(sealed_job: StoredJob) -> Seal:
    """Of two shards, with six and four output rows."""
    found = read_seal(sealed_job.store)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rows_per_file", "rows"), [(None, [10]), (1, [6, 4]), (6, [6, 4]), (7, [10]), (11, [10])]
)
def test_a_file_ends_with_the_shard_that_reaches_the_number(
    seal: Seal, rows_per_file: int | None, rows: list[int]
) -> None:
    parts = export_parts(seal, rows_per_file=rows_per_file)
    assert [part.rows for part in parts] == rows
    assert [shard.shard for part in parts for shard in part.shards] == [0, 1]


def test_names_say_which_seal_and_size_they_belong_to(seal: Seal) -> None:
    other = seal.model_copy(update={"ok": 7})
    assert seal_digest(seal) != seal_digest(other)
    names = {
        part.key
        for each, rows in ((seal, None), (seal, 1), (other, 1))
        for part in export_parts(each, rows_per_file=rows)
    }
    assert len(names) == 5


def test_a_job_without_shards_has_no_file(seal: Seal) -> None:
    assert export_parts(seal.model_copy(update={"shards": ()}), rows_per_file=None) == []


def test_openai_files_are_named_by_their_seal(seal: Seal) -> None:
    output, errors = openai_keys(seal)
    assert output.startswith("output-")
    assert errors == output.replace("output-", "errors-")
    assert openai_keys(seal.model_copy(update={"ok": 7})) != (output, errors)
