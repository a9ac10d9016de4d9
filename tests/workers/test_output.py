"""The Parquet file of a shard: what is written, and that a wrong file is not believed."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manifests.columns import Trace, output_schema, schema_fingerprint
from manifests.hashing import row_ids_digest, sha256_file
from tests.manifests.builders import StoredJob
from tests.workers.builders import ATTEMPT, empty_assembly, full_assembly
from tests.workers.fakes import PROMPT_IDS
from workers.errors import OutputError
from workers.output import check_shard, write_shard

SCHEMA = output_schema("none")


def written(
    tmp_path: Path, job: StoredJob, *, trace: Trace = "none", shard: int = 0
) -> pq.ParquetFile:
    path = tmp_path / "shard.parquet"
    assembly = full_assembly(job, shard=shard, traced=trace != "none")
    write_shard(path, assembly, schema=output_schema(trace), metadata={"spotbatch.job": "j"})
    return pq.ParquetFile(path)


@pytest.mark.parametrize("trace", ["none", "tokens", "commits"])
def test_the_file_has_exactly_the_planned_columns(
    tmp_path: Path, job: StoredJob, trace: Trace
) -> None:
    with written(tmp_path, job, trace=trace) as file:
        assert file.schema_arrow.equals(output_schema(trace))


def test_values_come_from_sample_row_and_attempt(tmp_path: Path, job: StoredJob) -> None:
    sample = full_assembly(job).in_order()[3]
    with written(tmp_path, job) as file:
        row = file.read().to_pylist()[3]
    assert row["id"] == "id-1"
    assert row["carried"] == '{"family":"a"}'
    assert (row["shard"], row["row"], row["sample"]) == (0, 1, 1)
    assert (row["attempt"], row["seed"]) == (ATTEMPT, sample.key)
    assert row["prompt_tokens"] == len(PROMPT_IDS)
    assert (row["tokens"], row["tokens_with_stop"], row["token_ids"]) == (
        2,
        3,
        list(sample.token_ids or ()),
    )
    assert row["error_class"] is None


def test_error_rows_have_no_output_and_zero_counts(tmp_path: Path, job: StoredJob) -> None:
    with written(tmp_path, job, trace="commits", shard=1) as file:
        row = file.read().to_pylist()[-1]
    nulls = ("text", "token_ids", "finish_reason", "commit_step", "confidence", "commit_token")
    assert [row[name] for name in nulls] == [None] * len(nulls)
    assert (row["tokens"], row["nfe"], row["positions"]) == (0, 0, 0)
    assert (row["error_class"], row["error_message"]) == ("EmptyPrompt", "no prompt")


def test_traces_are_aligned_with_tokens_and_in_commit_order(tmp_path: Path, job: StoredJob) -> None:
    with written(tmp_path, job, trace="commits") as file:
        row = file.read().to_pylist()[0]
    assert row["commit_step"] == [1, 0]
    assert row["log_probability"] == [-0.25, 0.0]
    assert row["commit_position"] == [4, 3]
    assert row["commit_token"] == row["token_ids"][::-1]
    assert row["commit_transition"] == [0, 1]


def test_a_lone_surrogate_in_an_error_message_can_be_stored(tmp_path: Path, job: StoredJob) -> None:
    assembly = empty_assembly(job)
    for sample in full_assembly(job).in_order():
        assembly.add(replace(sample, error_class="ValueError", error_message="\ud800"))
    path = tmp_path / "shard.parquet"
    write_shard(path, assembly, schema=SCHEMA, metadata={})
    assert pq.read_table(path)["error_message"][0].as_py() == "?"


def test_the_footer_holds_statistics_of_ids_and_numbers_only(
    tmp_path: Path, job: StoredJob
) -> None:
    with written(tmp_path, job) as file:
        group = file.metadata.row_group(0)
        columns = [group.column(index) for index in range(group.num_columns)]
    with_statistics = {c.path_in_schema for c in columns if c.is_stats_set}
    assert {"id", "nfe", "row"} <= with_statistics
    assert not {"text", "error_message", "carried"} & with_statistics


def test_it_is_one_compressed_row_group_without_dictionaries_for_text(
    tmp_path: Path, job: StoredJob
) -> None:
    with written(tmp_path, job) as file:
        assert file.num_row_groups == 1
        group = file.metadata.row_group(0)
        columns = [group.column(index) for index in range(group.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    with_dictionary = {c.path_in_schema for c in columns if c.has_dictionary_page}
    assert "attempt" in with_dictionary
    assert not with_dictionary & {"id", "text", "carried", "error_message"}


def test_metadata_is_in_the_file(tmp_path: Path, job: StoredJob) -> None:
    with written(tmp_path, job) as file:
        assert file.metadata.metadata[b"spotbatch.job"] == b"j"


def test_facts_are_those_of_the_file(tmp_path: Path, job: StoredJob) -> None:
    path = tmp_path / "shard.parquet"
    assembly = full_assembly(job, shard=1)
    write_shard(path, assembly, schema=SCHEMA, metadata={})
    facts = check_shard(path, assembly, schema=SCHEMA)
    ids = [(f"id-{row}", sample) for row in (3, 4) for sample in (0, 1)]
    assert (facts.samples, facts.ok, facts.errors) == (4, 2, 2)
    assert (facts.bytes, facts.sha256) == (path.stat().st_size, sha256_file(path))
    assert facts.row_ids_sha256 == row_ids_digest(ids)
    assert facts.schema_fingerprint == schema_fingerprint(SCHEMA)


def test_a_valid_file_with_fewer_rows_is_not_believed(tmp_path: Path, job: StoredJob) -> None:
    path = tmp_path / "shard.parquet"
    assembly = full_assembly(job)
    write_shard(path, assembly, schema=SCHEMA, metadata={})
    pq.write_table(pq.read_table(path).slice(0, 4), path)
    with pytest.raises(OutputError, match="the file has 4 samples, and not the 6"):
        check_shard(path, assembly, schema=SCHEMA)


def test_a_file_with_other_columns_is_not_believed(tmp_path: Path, job: StoredJob) -> None:
    path = tmp_path / "shard.parquet"
    assembly = full_assembly(job)
    write_shard(path, assembly, schema=SCHEMA, metadata={})
    pq.write_table(pq.read_table(path).drop_columns(["text"]), path)
    with pytest.raises(OutputError, match="columns"):
        check_shard(path, assembly, schema=SCHEMA)


def test_a_flipped_byte_in_a_page_is_found(tmp_path: Path, job: StoredJob) -> None:
    path = tmp_path / "shard.parquet"
    assembly = full_assembly(job)
    write_shard(path, assembly, schema=SCHEMA, metadata={})
    place = pq.read_metadata(path).row_group(0).column(0).data_page_offset + 60
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises((OSError, pa.ArrowException)):
        check_shard(path, assembly, schema=SCHEMA)
