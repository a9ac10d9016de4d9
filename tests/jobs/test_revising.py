"""Retries of whole jobs: what is chosen, what is refused, and what counts afterwards."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.reading import OpenJob, read_committed, require_seal
from jobs.revising import Retry, RetryRequest, retry_job
from jobs.stats import job_stats
from jobs.verify import verify_job
from manifests.committed import committed_rows
from manifests.errors import JobFileError, RevisionError
from manifests.open_revision import open_revision
from manifests.protocol import read_seal
from manifests.staged import StagedRow
from tests.jobs.support import FakeReplayer, commit, finish, finished_job, planned_job, prompts
from workers.errors import RowError
from workers.work import raise_staged_error

ROWS = [
    {"id": "short", "prompt": "ab"},
    {"id": "long", "prompt": "abcdef"},
    {"id": "empty", "prompt": ""},
    {"id": "also long", "prompt": "abcdefgh"},
    {"id": "short too", "prompt": "a"},
]
LENGTH = RetryRequest(finish_reason="length")
ERRORS = RetryRequest(errors=True)
MORE = ["decode.max_tokens=7"]


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    """A complete job of three shards: rows 1 and 3 ended by length, row 2 cannot be decoded."""
    return finished_job(tmp_path, rows=ROWS, set_=["decode.max_tokens=4", "sampling.n=2"])


def chosen(retry: Retry) -> dict[int, tuple[int, ...] | None]:
    """Rows by shard, as the open revision has them."""
    assert retry.revision is not None
    assert retry.revision.decision is not None
    return {shard.shard: shard.rows for shard in retry.revision.decision.shards}


def output(job: OpenJob) -> dict[str, tuple[Any, ...]]:
    """What counts, by row id: finish reasons, numbers of tokens and attempts of all samples."""
    found: dict[str, tuple[Any, ...]] = {}
    seal = require_seal(job)
    for table in committed_rows(job.store, job.plan, seal):
        for row in table.to_pylist():
            entry = (row["finish_reason"], row["tokens"], row["attempt"])
            found[row["id"]] = (*found.get(row["id"], ()), entry)
    return found


def test_rows_that_ended_by_length_are_decoded_with_more_tokens_and_the_others_kept(
    job: OpenJob,
) -> None:
    before = output(job)
    retry = retry_job(job, LENGTH, overrides=MORE)
    assert chosen(retry) == {0: (1,), 1: (1,)}
    assert output(job) == before
    finish(job)
    after = output(job)
    assert [(reason, tokens) for reason, tokens, _ in after["long"]] == [("stop", 6)] * 2
    assert [(reason, tokens) for reason, tokens, _ in after["also long"]] == [("length", 7)] * 2
    assert {name: after[name] for name in ("short", "empty", "short too")} == {
        name: before[name] for name in ("short", "empty", "short too")
    }
    assert verify_job(job).passed


def test_a_replay_decodes_each_row_under_the_settings_of_its_revision(job: OpenJob) -> None:
    retry_job(job, LENGTH, overrides=MORE)
    finish(job)
    replayers = {0: FakeReplayer(max_tokens=4), 1: FakeReplayer(max_tokens=7)}
    verification = verify_job(job, replay=100, replayer_of=lambda number: replayers[number])
    assert verification.passed
    assert [place[2] for place in replayers[1].replayed] == ["long"] * 2 + ["also long"] * 2
    assert {place[2] for place in replayers[0].replayed} == {"short", "short too"}


def test_all_that_was_spent_stays_counted(job: OpenJob) -> None:
    before = job_stats(job)
    retry_job(job, RetryRequest(shards=(0,)))
    finish(job)
    committed = read_committed(job)
    assert [record.shard for record in committed.superseded] == [0]
    assert len(committed.all_records) == 4
    after = job_stats(job)
    assert after.tokens_digest == before.tokens_digest
    assert after.tokens == before.tokens
    assert (after.tokens_per_batch_forward or 0) < (before.tokens_per_batch_forward or 0)


def test_time_of_workers_is_that_of_all_revisions(
    job: OpenJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    retry_job(job, RetryRequest(shards=(0,)))
    finish(job)
    found = read_committed(job)
    long = {"engine_s": 3.0}
    spent = replace(
        found,
        records={shard: r.model_copy(update=long) for shard, r in found.records.items()},
        superseded=tuple(record.model_copy(update=long) for record in found.superseded),
    )
    monkeypatch.setattr("jobs.stats.read_committed", lambda job: spent)
    assert job_stats(job).engine_s == 3.0 * 4


@pytest.mark.parametrize("request_", [ERRORS, RetryRequest(failed=True)])
def test_errors_that_planning_found_are_not_tried_again(
    job: OpenJob, request_: RetryRequest
) -> None:
    retry = retry_job(job, request_)
    assert (retry.revision, retry.why) == (None, f"no row to decode again ({request_.reason})")
    assert job.store.list("revisions/") == []


def with_errors(job: OpenJob, monkeypatch: pytest.MonkeyPatch, *, ids: Sequence[str]) -> None:
    """Make the next attempts fail at these rows."""

    def fail(row: StagedRow) -> None:
        raise_staged_error(row)
        if row.id in ids:
            raise RowError("OutOfMemory", "no memory")

    monkeypatch.setattr("tests.jobs.support.raise_staged_error", fail)


@pytest.mark.parametrize(
    ("request_", "expected"), [(ERRORS, {0: (1,)}), (RetryRequest(failed=True), {0: None})]
)
def test_errors_of_decoding_are_tried_again_by_row_or_by_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: RetryRequest, expected: Any
) -> None:
    with monkeypatch.context() as patch:
        planned = planned_job(tmp_path, rows=ROWS)
        job = OpenJob(store=planned.store, plan=planned.plan)
        with_errors(job, patch, ids=["long"])
        finish(job)
    assert require_seal(job).errors == 2
    assert chosen(retry_job(job, request_)) == expected
    finish(job)
    assert require_seal(job).errors == 1
    assert verify_job(job).passed
    assert retry_job(job, request_).revision is None


def test_the_same_retry_goes_on_with_the_revision_that_is_open(job: OpenJob) -> None:
    first = retry_job(job, LENGTH, overrides=MORE)
    commit(job, shards=[1])
    again = retry_job(job, LENGTH, overrides=MORE)
    assert chosen(again) == chosen(first)
    assert again.revision is not None
    assert list(again.revision.read_records()) == [1]
    finish_rest(job)
    assert require_seal(job).revision == 1


def finish_rest(job: OpenJob) -> None:
    """Commit what is missing and seal."""
    revision = open_revision(job.store, job.plan)
    assert revision is not None
    done = revision.read_records()
    commit(job, shards=[s.shard for s in revision.shards if s.shard not in done])
    revision.seal()


def test_another_retry_waits_for_the_one_that_is_open(job: OpenJob) -> None:
    retry_job(job, LENGTH, overrides=MORE)
    with pytest.raises(
        RevisionError, match=r"revision 1 is open \(finish reason length, decode.max_tokens=7\)"
    ):
        retry_job(job, RetryRequest(shards=(0,)))


def test_shards_are_chosen_whole_and_twice_if_asked_twice(job: OpenJob) -> None:
    for revision in (1, 2):
        assert chosen(retry_job(job, RetryRequest(shards=(2, 0)))) == {0: None, 2: None}
        finish(job)
        assert require_seal(job).revision == revision
    assert verify_job(job).passed


def test_operational_settings_may_change_and_are_not_kept(job: OpenJob) -> None:
    retry = retry_job(job, RetryRequest(shards=(0,)), overrides=["cluster.workers=3"])
    assert retry.job.cluster.workers == 3
    assert retry.revision is not None
    assert retry.revision.decision is not None
    assert retry.revision.decision.overrides == {}


@pytest.mark.parametrize(
    ("request_", "overrides", "error", "message"),
    [
        (LENGTH, [], RevisionError, "decoding is deterministic, so rows that ended by `length`"),
        (LENGTH, ["cluster.workers=2"], RevisionError, "decoding is deterministic"),
        (ERRORS, ["shards.rows=3"], RevisionError, "a retry cannot change shards.rows"),
        (ERRORS, ["seed.value=3"], RevisionError, "a retry cannot change seed.value"),
        (ERRORS, ["decode.max_token=3"], JobFileError, "did you mean `decode.max_tokens`"),
        (ERRORS, ["decode.max_tokens=0"], JobFileError, "decode.max_tokens"),
        (
            RetryRequest(shards=(3,)),
            [],
            RevisionError,
            "the job has no shard 3; its shards are",
        ),
    ],
)
def test_what_no_revision_can_be_is_refused(
    job: OpenJob,
    request_: RetryRequest,
    overrides: list[str],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        retry_job(job, request_, overrides=overrides)
    assert job.store.list("revisions/") == []


def test_a_job_that_is_not_complete_can_only_go_on(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    job = OpenJob(store=planned.store, plan=planned.plan)
    commit(job, shards=[0])
    with pytest.raises(RevisionError, match="the job is not complete, so there is nothing"):
        retry_job(job, ERRORS)
    with pytest.raises(RevisionError, match=r"not complete, and decode.max_tokens can change"):
        retry_job(job, RetryRequest(failed=True), overrides=MORE)
    retry = retry_job(job, RetryRequest(failed=True), overrides=["cluster.workers=2"])
    assert retry.revision is not None
    assert (retry.revision.number, retry.job.cluster.workers) == (0, 2)
    assert read_seal(job.store) is None


def test_a_revised_file_says_which_revision_made_it(job: OpenJob) -> None:
    retry_job(job, LENGTH, overrides=MORE)
    finish(job)
    with job.store.open_local(require_seal(job).shards[0].data_key) as path:
        metadata = pq.read_metadata(path).metadata
    assert metadata[b"spotbatch.revision"] == b"1"
    assert b'"max_tokens":7' in metadata[b"spotbatch.rule"]
    assert metadata[b"spotbatch.distribution_preserving"].startswith(b"true: ")
