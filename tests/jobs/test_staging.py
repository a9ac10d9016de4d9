"""Staging: one row group per shard, and inputs that are unusable as a whole."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs import staging
from jobs.staging import StagedInput, stage_input
from manifests.errors import InputError
from manifests.hashing import sha256_file
from manifests.plan import shard_seed
from manifests.staged import STAGED_SCHEMA
from tests.jobs.support import job_of, prompts


def stage(folder: Path, rows: list[Any], *settings: str) -> StagedInput:
    staged_folder = folder / "staged"
    staged_folder.mkdir()
    return stage_input(job_of(folder, rows=rows, set_=settings), staged_folder)


def test_each_shard_is_one_row_group_and_the_last_may_be_short(tmp_path: Path) -> None:
    staged = stage(tmp_path, prompts(5))
    (part,) = staged.parts
    file = pq.ParquetFile(part.path)
    assert file.schema_arrow.equals(STAGED_SCHEMA)
    groups = [file.read_row_group(i)["row"].to_pylist() for i in range(file.num_row_groups)]
    file.close()
    assert groups == [[0, 1], [2, 3], [4]]
    assert [(s.shard, s.rows, s.first_row, s.row_group) for s in staged.shards] == [
        (0, 2, 0, 0),
        (1, 2, 2, 1),
        (2, 1, 4, 2),
    ]


def test_parts_are_named_hashed_and_measured(tmp_path: Path) -> None:
    (part,) = stage(tmp_path, prompts(3)).parts
    digits = part.identity.sha256[:16]
    assert part.identity.path == f"input/part-r0000-00000000-{digits}.parquet"
    assert part.identity.sha256 == sha256_file(part.path)
    assert part.identity.bytes == part.path.stat().st_size


def test_a_large_input_is_cut_into_several_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "PART_CHARACTERS", 60)
    staged = stage(tmp_path, prompts(10))
    assert len(staged.parts) > 1
    for part in staged.parts:
        own = [shard for shard in staged.shards if shard.part == part.identity.path]
        assert [shard.row_group for shard in own] == list(range(len(own)))
        assert pq.read_metadata(part.path).num_row_groups == len(own)
    assert [shard.first_row for shard in staged.shards] == [0, 2, 4, 6, 8]


def test_staging_the_same_input_twice_gives_equal_bytes(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        job = job_of(tmp_path, rows=prompts(5))
        digests += [part.identity for part in stage_input(job, tmp_path / name).parts]
    assert digests[0] == digests[1]


def test_shard_seeds_come_from_the_job_seed(tmp_path: Path) -> None:
    staged = stage(tmp_path, prompts(3), "seed.value=5")
    assert [shard.seed for shard in staged.shards] == [shard_seed(5, 0), shard_seed(5, 1)]


def test_a_longer_prompt_and_more_samples_cost_more_and_an_error_row_nothing(
    tmp_path: Path,
) -> None:
    rows = [{"id": "a", "prompt": "x"}, {"id": "b", "prompt": "x" * 500}, {"id": "c"}]
    staged = stage(tmp_path, rows, "shards.rows=1", "sampling.n=2")
    short, long, error = (shard.expected_cost for shard in staged.shards)
    assert long > short >= 2 * 256
    assert error == 0.0


def test_the_limit_takes_the_first_rows(tmp_path: Path) -> None:
    assert stage(tmp_path, prompts(9), "input.limit=3").rows == 3


def test_a_part_holds_so_many_shards_that_its_footer_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "PART_SHARDS", 2)
    staged = stage(tmp_path, prompts(9))
    assert [pq.read_metadata(part.path).num_row_groups for part in staged.parts] == [2, 2, 1]


def test_a_row_with_a_budget_of_its_own_costs_that(tmp_path: Path) -> None:
    rows = [{"id": "a", "prompt": "x", "n": 9}, {"id": "b", "prompt": "x", "n": None}]
    own, other = stage(tmp_path, rows, "shards.rows=1", "input.columns.max_tokens=n").shards
    assert other.expected_cost - own.expected_cost == 256 - 9


def test_the_budgets_of_rows_that_can_be_decoded_are_summed(tmp_path: Path) -> None:
    rows = [{"id": "a", "prompt": "x", "n": 9}, {"id": "b", "prompt": "x"}, {"id": "c"}]
    assert stage(tmp_path, rows, "input.columns.max_tokens=n").max_tokens == 9 + 256


def test_rows_that_the_filter_drops_are_counted(tmp_path: Path) -> None:
    staged = stage(tmp_path, prompts(9), "input.filter=family == 'a'")
    assert (staged.rows, staged.dropped) == (5, 4)


def test_a_filter_that_drops_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is true for none of the 2 rows"):
        stage(tmp_path, prompts(2), "input.filter=family == 'z'")


def test_trouble_is_counted_by_class(tmp_path: Path) -> None:
    rows = [*prompts(2), {"id": "x", "prompt": None}, {"id": "y", "prompt": ""}, prompts(1)[0]]
    staged = stage(tmp_path, rows)
    assert staged.trouble == {"NullPrompt": 1, "EmptyPrompt": 1, "DuplicateId": 1}
    assert staged.first_trouble.startswith("prompts.jsonl, line 3: ")


@pytest.mark.parametrize("rows", [[], ["only blank lines"]])
def test_an_input_without_rows_is_refused(tmp_path: Path, rows: list[Any]) -> None:
    job = job_of(tmp_path, rows=[])
    Path(job.input.uris[0]).write_text("\n \n" if rows else "")
    with pytest.raises(InputError, match=r"the file is empty|there is no row in it"):
        stage_input(job, tmp_path)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [{"id": "a", "x": 1}, {"id": "b"}],
            "input.columns.prompt: no row has a column `prompt`; it has id, x",
        ),
        ([{"prompt": "x"}] * 2, "input.columns.id: no row has a column `id`; it has prompt"),
        (["text", [1]], "no row can be used; the first, prompts.jsonl, line 1: the line is not a"),
    ],
)
def test_an_input_in_which_no_row_has_the_column_is_refused(
    tmp_path: Path, rows: list[Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        stage(tmp_path, rows)


def test_an_input_of_null_prompts_is_a_job_of_error_rows(tmp_path: Path) -> None:
    assert stage(tmp_path, [{"id": "a", "prompt": None}]).trouble == {"NullPrompt": 1}


def test_a_plan_of_too_many_shards_is_refused_by_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "MAX_SHARDS", 3)
    (tmp_path / "fits").mkdir()
    assert len(stage(tmp_path / "fits", prompts(6), "shards.rows=2").shards) == 3
    with pytest.raises(InputError, match=r"^shards\.rows 2: the input makes more than 3 shards"):
        stage(tmp_path, prompts(7), "shards.rows=2")
