"""Extensions of whole jobs: what is appended, and what counts afterwards."""

import gzip
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.exporting import export_job
from jobs.extending import extend_job
from jobs.inspecting import Choice, inspect_samples
from jobs.planning import plan_job
from jobs.reading import OpenJob, open_job, require_seal
from jobs.results import load_results
from jobs.resuming import resume_job, stored_and_job
from jobs.revising import RetryRequest, retry_job
from jobs.stats import job_stats
from jobs.status import read_status
from jobs.verify import verify_job
from manifests.errors import DamagedError, FingerprintError, JobFileError, RevisionError
from manifests.garbage import find_garbage
from manifests.protocol import read_seals
from manifests.store import open_store
from manifests.verification import verify_structure
from tests.jobs.growing import ALL, PLANNED, BlindStore, append, extend, extended
from tests.jobs.support import (
    FakeReplayer,
    commit,
    finish,
    finished_job,
    job_of,
    prompts,
    write_rows,
)


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    """A complete job of three shards, the last one of one row."""
    return finished_job(tmp_path, rows=prompts(PLANNED), set_=["sampling.n=2"])


def output(uri: str) -> list[dict[str, Any]]:
    """What counts, but for where and by whom it was decoded."""
    rows: list[dict[str, Any]] = load_results(uri).drop(["shard", "row", "attempt"]).to_pylist()
    return rows


def test_appended_rows_become_further_shards_of_the_same_job(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    told = extend(job)
    assert (told.revision, told.rows, told.shards) == (1, 4, "3-5")
    assert (told.rows_total, told.shards_total, told.written) == (ALL, 6, True)
    assert told.line().startswith("4 appended rows become shards 3-5; `spotbatch run ")
    again = open_job(job.store.uri)
    assert [shard.rows for shard in again.plan.shards] == [2, 2, 1, 1, 2, 1]
    assert again.plan.job_id == job.plan.job_id


def test_the_output_is_that_of_a_job_planned_with_all_rows(tmp_path: Path, job: OpenJob) -> None:
    before = {path.name: path.read_bytes() for path in Path(job.store.uri, "data").iterdir()}
    again = extended(job, tmp_path)
    (tmp_path / "whole").mkdir()
    whole = finished_job(tmp_path / "whole", rows=prompts(ALL), set_=["sampling.n=2"])
    assert output(again.store.uri) == output(whole.store.uri)  # seeds of the noise included
    assert job_stats(again).tokens_digest == job_stats(whole).tokens_digest
    assert again.plan.rows_sha256 == whole.plan.rows_sha256
    after = {path.name: path.read_bytes() for path in Path(job.store.uri, "data").iterdir()}
    assert {name: after[name] for name in before} == before
    assert len(after) == 6


def test_a_job_can_be_extended_again_and_again(tmp_path: Path, job: OpenJob) -> None:
    for count in range(PLANNED, ALL):
        extended(job, tmp_path, rows=prompts(ALL)[count : count + 1])
    (tmp_path / "whole").mkdir()
    whole = finished_job(tmp_path / "whole", rows=prompts(ALL), set_=["sampling.n=2"])
    assert output(job.store.uri) == output(whole.store.uri)
    assert verify_structure(job.store) == []
    assert open_job(job.store.uri).plan.extended_in == (1, 2, 3, 4)


def test_every_reader_sees_the_whole_job(tmp_path: Path, job: OpenJob) -> None:
    again = extended(job, tmp_path)
    stats = job_stats(again)
    assert (stats.complete, stats.shards, stats.shards_total, stats.rows) == (True, 6, 6, ALL)
    verification = verify_job(again, replay=18, replayer_of=lambda revision: FakeReplayer())
    assert verification.passed, verification.lines()
    assert verification.replays is not None
    assert verification.replays.replayed == 18
    found = [sample.values["id"] for sample in inspect_samples(again, Choice(shards=[3, 5]))]
    assert found == ["r5", "r5", "r8", "r8"]
    place = tmp_path / "export"
    assert export_job(again, open_store(str(place))).export.rows == 18
    (exported,) = place.glob("*.parquet")
    assert pq.read_table(exported)["id"].to_pylist() == [f"r{i}" for i in range(ALL) for _ in "ab"]
    assert [seal.rows for seal in read_seals(again.store)] == [PLANNED, ALL]


def test_until_it_is_decoded_the_rows_before_it_count(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    extend(job)
    again = open_job(job.store.uri)
    assert load_results(job.store.uri).num_rows == 2 * PLANNED
    stats = job_stats(again)
    assert (stats.complete, stats.shards, stats.shards_total) == (False, 3, 6)
    commit(again, shards=[4])
    assert verify_structure(again.store) == []
    assert find_garbage(again.store, again.plan) == []
    assert load_results(job.store.uri).num_rows == 2 * PLANNED


def test_whoever_watches_a_job_sees_it_grow(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    extend(job)
    now = datetime.now(UTC)
    status = read_status(job, now=now)  # of the job as it was opened before
    assert (status.rows, status.rows_total, status.shards_total) == (PLANNED, ALL, 6)
    assert (status.state, status.missing, status.appends) == ("stopped", "3-5", True)
    finish(open_job(job.store.uri))
    status = read_status(job, now=now)
    assert (status.state, status.rows, status.revision, status.appends) == (
        "complete",
        ALL,
        1,
        True,
    )


def test_the_job_file_belongs_to_the_extended_job(tmp_path: Path, job: OpenJob) -> None:
    spec = job_of(tmp_path, rows=prompts(PLANNED), set_=["sampling.n=2"])
    append(tmp_path, prompts(ALL)[PLANNED:])
    with pytest.raises(FingerprintError, match=r"input \(contents\).*`spotbatch extend` adds rows"):
        plan_job(spec)
    extend(job)
    planned = plan_job(spec)
    assert (planned.created, planned.plan.rows) == (False, ALL)
    finish(planned)
    assert resume_job(job.store.uri)[0].plan == planned.plan


def test_rows_of_an_extended_job_can_be_retried(tmp_path: Path, job: OpenJob) -> None:
    again = extended(job, tmp_path)
    retry = retry_job(again, RetryRequest(shards=(2, 4)))
    assert retry.revision is not None
    assert [shard.shard for shard in retry.revision.shards] == [2, 4]
    finish(again)
    assert verify_structure(again.store) == []
    assert len(require_seal(again).shards) == 6
    assert len(find_garbage(again.store, again.plan, superseded=True)) == 2
    with pytest.raises(RevisionError, match="the job has no shard 6; its shards are 0-5"):
        retry_job(again, RetryRequest(shards=(6,)))


def test_a_job_with_retried_rows_can_be_extended(tmp_path: Path, job: OpenJob) -> None:
    retry_job(job, RetryRequest(shards=(0,)), overrides=["decode.max_tokens=3"])
    finish(job)
    again = extended(job, tmp_path)
    assert again.plan.extended_in == (2,)
    assert verify_structure(again.store) == []
    lengths = load_results(job.store.uri, columns=["id", "tokens"]).to_pylist()
    assert {row["tokens"] for row in lengths if row["id"] in ("r0", "r1")} == {3}
    assert {row["tokens"] for row in lengths if row["id"] == "r8"} == {5}


def test_without_appended_rows_nothing_is_written(tmp_path: Path, job: OpenJob) -> None:
    before = sorted(job.store.list(""))
    told = extend(job)
    assert (told.revision, told.written, told.open, told.rows) == (None, False, False, 0)
    assert told.line() == "no row was appended to the 5 that are planned"
    assert sorted(job.store.list("")) == before


def test_a_dry_run_writes_nothing_and_says_what_would_come(tmp_path: Path, job: OpenJob) -> None:
    before = sorted(job.store.list(""))
    append(tmp_path, [*prompts(6)[PLANNED:], {"id": "blank", "prompt": ""}])
    told = extend(job, dry_run=True)
    assert told.line() == "2 appended rows would become shards 3-4"
    assert (told.written, told.open, told.error_rows) == (False, False, {"EmptyPrompt": 1})
    assert sorted(job.store.list("")) == before


def test_the_same_extension_again_finds_that_it_is_open(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    extend(job)
    told = extend(job)
    assert (told.revision, told.open) == (None, True)
    assert "no row was appended to the 9 that are planned; shards wait for" in told.line()
    append(tmp_path, [{"id": "late", "prompt": "late"}])
    with pytest.raises(RevisionError, match=r"revision 1 is open \(4 rows appended\); finish it"):
        extend(job)


def test_of_two_extensions_at_once_one_wins_and_the_other_is_told(
    tmp_path: Path, job: OpenJob
) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    slow, spec = stored_and_job(job.store.uri)
    extend(job)  # after the slow one has looked
    append(tmp_path, [{"id": "late", "prompt": "late"}])
    blind = OpenJob(store=BlindStore(slow.store), plan=slow.plan)
    with pytest.raises(RevisionError, match=r"opened revision 1 meanwhile \(4 rows appended\)"):
        extend_job(blind, spec)
    assert verify_structure(job.store) == []
    finish(open_job(job.store.uri))
    left = [key for key in job.store.list("input/") if "r0001" in key]
    assert len(left) == 2
    garbage = find_garbage(job.store, open_job(job.store.uri).plan)
    assert len(garbage) == 1
    assert garbage[0] in left
    assert garbage[0] != open_job(job.store.uri).plan.staged[-1].path


def test_two_equal_extensions_at_once_are_one(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    slow, spec = stored_and_job(job.store.uri)
    first = extend(job)
    second = extend_job(OpenJob(store=BlindStore(slow.store), plan=slow.plan), spec)
    assert second == first
    assert len([key for key in job.store.list("input/") if "r0001" in key]) == 1


def test_a_staged_file_with_other_bytes_is_damage(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    extend(job)
    key = open_job(job.store.uri).plan.staged[-1].path
    (Path(job.store.uri) / "revisions" / "0001.json").unlink()
    (Path(job.store.uri) / key).write_bytes(b"torn")
    with pytest.raises(DamagedError, match="it is there with other bytes; delete it"):
        extend(job)


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl.gz"])
def test_other_forms_of_input_grow_too(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"in.{form}"
    write(path, prompts(PLANNED))
    spec = job_of(tmp_path, rows=prompts(1), set_=[f"input.uri={path}"])
    planned = plan_job(spec)
    finish(planned)
    write(path, prompts(ALL))
    job = OpenJob(store=planned.store, plan=planned.plan)
    assert extend_job(job, spec).rows == ALL - PLANNED


def write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """A file in the form that its name says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".gz":
        plain = write_rows(path.with_suffix(".plain"), rows)
        path.write_bytes(gzip.compress(plain.read_bytes()))
    else:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n")


def test_a_filter_and_a_limit_hold_for_appended_rows(tmp_path: Path) -> None:
    settings = ["input.filter=family == 'a'", "input.limit=4"]
    job = finished_job(tmp_path, rows=prompts(PLANNED), set_=settings)
    assert job.plan.rows == 3
    append(tmp_path, prompts(ALL)[PLANNED:])
    assert extend(job).rows == 1  # of r6 and r8


def test_a_setting_that_cannot_be_read_is_refused(job: OpenJob) -> None:
    with pytest.raises(JobFileError, match=r"cluster\.workers"):
        stored_and_job(job.store.uri, ["cluster.workers=0"])
