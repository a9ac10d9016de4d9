"""Figures from committed output: the digest by hand, means, rates, and what is left out."""

import hashlib
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.reading import OpenJob
from jobs.stats import (
    ERROR_COUNT,
    JobStats,
    busy_seconds,
    counted,
    digest_parts,
    engine_figures,
    job_stats,
)
from manifests.columns import output_schema
from manifests.committed import committed_rows
from manifests.errors import DamagedError
from manifests.protocol import read_records
from manifests.records import CommitRecord
from tests.jobs.support import commit, finished_job, planned_job, prompts

BAD_ROW = {"id": "bad", "prompt": None}
SCORER = """
import json
def score(row):
    return {"correct": row["text"] is not None and row["text"].endswith(("0", "1", "2")),
            "family": json.loads(row["carried"])["family"]}
"""


def expected_digest(rows: list[tuple[str, int, str | None]]) -> str:
    """The definition, written out: (id, sample, prompt or None for an error)."""
    data = b""
    for row_id, sample, prompt in rows:
        data += struct.pack("<I", len(row_id.encode())) + row_id.encode()
        data += struct.pack("<I", sample)
        data += struct.pack("<I", ERROR_COUNT if prompt is None else len(prompt))
        data += b"".join(struct.pack("<I", ord(letter)) for letter in prompt or "")
    return hashlib.sha256(data).hexdigest()


def test_the_digest_is_made_over_ids_samples_counts_and_tokens_in_input_order(
    tmp_path: Path,
) -> None:
    job = finished_job(tmp_path, rows=[*prompts(2), BAD_ROW], set_=["sampling.n=2"])
    rows = [("r0", "say 0"), ("r1", "say 1"), ("bad", None)]
    expected = [(row_id, sample, prompt) for row_id, prompt in rows for sample in (0, 1)]
    assert job_stats(job).tokens_digest == expected_digest(expected)


def test_the_digest_of_a_known_table_never_changes() -> None:
    schema = output_schema("none")
    names = ("id", "sample", "error_class", "token_ids")
    fields = [schema.field(name) for name in names]
    values = {
        "id": ["a", "é", "b"],
        "sample": [0, 1, 0],
        "error_class": [None, None, "NullPrompt"],
        "token_ids": [[1, 2], [], None],
    }
    table = pa.Table.from_pydict(values, schema=pa.schema(fields))
    assert b"".join(digest_parts(table)).hex() == (
        "0100000061"
        "00000000"
        "02000000"
        "01000000"
        "02000000"
        "02000000c3a9"
        "01000000"
        "00000000"
        "0100000062"
        "00000000"
        "ffffffff"
    )


def test_the_digest_does_not_depend_on_the_order_of_commits_or_on_sharding(
    tmp_path: Path,
) -> None:
    digests = set()
    for name, rows_per_shard, reverse in (("a", 2, False), ("b", 2, True), ("c", 5, False)):
        folder = tmp_path / name
        folder.mkdir()
        planned = planned_job(folder, rows=prompts(5), set_=[f"shards.rows={rows_per_shard}"])
        shards = list(range(len(planned.plan.shards)))
        commit(planned, shards=shards[::-1] if reverse else shards)
        digests.add(job_stats(OpenJob(store=planned.store, plan=planned.plan)).tokens_digest)
    assert len(digests) == 1


def test_counts_and_means_leave_error_rows_out(tmp_path: Path) -> None:
    stats = job_stats(finished_job(tmp_path, rows=[*prompts(3), BAD_ROW]))
    assert (stats.rows, stats.samples, stats.ok, stats.errors) == (4, 4, 3, 1)
    assert stats.error_classes == {"NullPrompt": 1}
    assert stats.finish_reasons == {"stop": 3}
    assert (stats.tokens, stats.tokens_with_stop, stats.prompt_tokens) == (15, 18, 30)
    assert (stats.nfe_per_sample, stats.draft_free_nfe_per_sample) == (3.0, 5.0)
    assert stats.tokens_per_forward == 15 / 9
    assert stats.wall_s_per_sample == 0.5
    assert stats.positions == 300


def test_forwards_of_batches_come_from_the_commit_records(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(4))
    records = read_records(job.store, job.plan)
    forwards = sum(record.counters["forwards"] for record in records.values())
    assert forwards > 0
    assert job_stats(job).tokens_per_batch_forward == 20 / forwards


def test_a_job_without_output_has_no_means(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    stats = job_stats(OpenJob(store=planned.store, plan=planned.plan))
    assert (stats.complete, stats.shards, stats.samples) == (False, 0, 0)
    assert stats.nfe_per_sample is stats.tokens_per_forward is stats.tokens_per_second is None
    assert stats.distribution_preserving is None


def test_a_part_of_a_job_counts_what_is_committed(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(5))
    commit(planned, shards=[1])
    stats = job_stats(OpenJob(store=planned.store, plan=planned.plan))
    assert (stats.complete, stats.shards, stats.shards_total, stats.rows) == (False, 1, 3, 2)
    assert stats.tokens_digest == expected_digest([("r2", 0, "say 2"), ("r3", 0, "say 3")])


def test_files_say_whether_the_distribution_is_preserved_and_why(tmp_path: Path) -> None:
    stats = job_stats(finished_job(tmp_path, rows=prompts(3)))
    assert stats.distribution_preserving is True
    assert "target's own transition" in str(stats.distribution_reason)


def test_fast_numerics_do_not_preserve_the_distribution(tmp_path: Path) -> None:
    stats = job_stats(finished_job(tmp_path, rows=prompts(3), set_=["decode.numerics=fast"]))
    assert stats.distribution_preserving is False


def test_replayed_and_diverged_samples_are_summed_over_the_shards(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    records = list(read_records(job.store, job.plan).values())
    counters = [{"replayed": 4, "diverged": 1}, {"replayed": 2, "diverged": 1}]
    pairs = zip(records[:2], counters, strict=True)
    told = [record.model_copy(update={"counters": spent}) for record, spent in pairs]
    assert (counted(told, "replayed"), counted(told, "diverged")) == (6, 2)
    stats = job_stats(job)
    assert (stats.replayed, stats.diverged) == (0, 0)


def test_greedy_match_does_not_preserve_the_distribution(tmp_path: Path) -> None:
    lossy = ["decode.verifier=greedy", "decode.temperature=1"]
    stats = job_stats(finished_job(tmp_path, rows=prompts(3), set_=lossy)).to_json()
    assert stats["distribution_preserving"] is False
    assert "decode.verifier is greedy" in stats["distribution_reason"]


def test_the_rule_is_told_with_its_constants_and_verifier(tmp_path: Path) -> None:
    threshold = ["decode.rule=threshold", "decode.tau=0.9", "decode.temperature=0.5"]
    job = finished_job(tmp_path, rows=prompts(1), set_=[*threshold, "decode.top_k=7"])
    assert job_stats(job).to_json()["rule"] == {
        "rule": "threshold",
        "tau": 0.9,
        "denoising_steps": None,
        "entropy_bound": None,
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 1.0,
        "verifier": "coupled",
    }


def test_accuracy_is_null_without_a_scorer(tmp_path: Path) -> None:
    stats = job_stats(finished_job(tmp_path, rows=prompts(2)))
    assert (stats.accuracy, stats.scored, stats.scorer_errors) == (None, None, 0)


def test_accuracy_is_given_by_family_with_the_rows_that_had_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stats_scorer.py").write_text(SCORER)
    monkeypatch.chdir(tmp_path)
    job = finished_job(tmp_path, rows=[*prompts(4), {"id": "bare", "prompt": "x"}])
    stats = job_stats(job, scorer="stats_scorer:score")
    assert stats.accuracy == {"all": 0.6, "a": 1.0, "b": 0.5}
    assert stats.scored == {"all": 5, "a": 2, "b": 2}
    assert stats.scorer_errors == 1


def test_a_changed_data_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    path = next((tmp_path / "out" / "data").iterdir())
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(DamagedError, match=path.name):
        job_stats(job)


def record(planned: OpenJob, *, committed: str, engine_s: float) -> CommitRecord:
    first = read_records(planned.store, planned.plan)[0]
    return first.model_copy(update={"committed": committed, "engine_s": engine_s})


@pytest.mark.parametrize(
    ("shards", "busy_s"),
    [
        ([], 0.0),
        ([("00:00:10", 4.0)], 4.0),
        ([("00:00:10", 4.0), ("00:00:14", 4.0)], 8.0),
        ([("00:00:14", 4.0), ("00:00:12", 4.0)], 6.0),
        ([("00:00:14", 10.0), ("00:00:12", 2.0)], 10.0),
        ([("00:00:10", 1.0), ("01:00:00", 1.0)], 2.0),
    ],
)
def test_time_counts_once_while_any_shard_is_decoded_and_not_between_runs(
    tmp_path: Path, shards: list[tuple[str, float]], busy_s: float
) -> None:
    job = finished_job(tmp_path, rows=prompts(1))
    records = [
        record(job, committed=f"2025-01-01T{clock}+00:00", engine_s=engine_s)
        for clock, engine_s in shards
    ]
    assert busy_seconds(records) == pytest.approx(busy_s)


def test_the_json_form_has_the_figures_that_scripts_read(tmp_path: Path) -> None:
    stats = job_stats(finished_job(tmp_path, rows=prompts(2))).to_json()
    assert stats.keys() == set(JobStats.__dataclass_fields__)
    assert stats.keys() >= {
        "rows",
        "samples",
        "ok",
        "errors",
        "tokens",
        "nfe_per_sample",
        "draft_free_nfe_per_sample",
        "tokens_per_forward",
        "tokens_per_second",
        "distribution_preserving",
        "distribution_reason",
        "rule",
        "accuracy",
        "tokens_digest",
    }


def test_digest_rows_come_from_the_committed_files_only(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(2))
    before = job_stats(job).tokens_digest
    stray = tmp_path / "out" / "data" / "00000000-ffffffffffffffff.parquet"
    stray.write_bytes(b"of an attempt that lost")
    assert job_stats(job).tokens_digest == before
    (table,) = committed_rows(job.store, job.plan, read_records(job.store, job.plan))
    assert table["id"].to_pylist() == ["r0", "r1"]


def test_the_engines_time_and_prefix_hits_are_summed_over_shards(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(4), set_=["shards.rows=2"])
    spent = {"target_us": 3_000_000, "drafter_us": 500_000, "host_us": 250_000}
    pages = [{"page_hits": 3, "page_misses": 1}, {"page_hits": 0, "page_misses": 4}]
    records = list(read_records(job.store, job.plan).values())
    told = [
        record.model_copy(update={"counters": spent | found})
        for record, found in zip(records, pages, strict=True)
    ]
    assert engine_figures(told) == {
        "target_s": 6.0,
        "drafter_s": 1.0,
        "host_s": 0.5,
        "prefix_hit_rate": 3 / 8,
    }
    assert engine_figures([])["prefix_hit_rate"] is None
