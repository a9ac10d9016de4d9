"""Inputs and jobs that cannot be extended are refused by name, and nothing is written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.extending import extend_job
from jobs.planning import plan_job
from jobs.reading import OpenJob, open_job
from jobs.results import load_results
from jobs.resuming import stored_and_job
from jobs.revising import RetryRequest, retry_job
from jobs.staging import stage_appended
from manifests.errors import FingerprintError, InputError, RevisionError
from manifests.job import JobSpec
from manifests.open_revision import open_revision
from tests.jobs.growing import ALL, PLANNED, append, extend
from tests.jobs.support import (
    finish,
    finished_job,
    job_of,
    planned_job,
    prompts,
    write_rows,
)


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    """A complete job of three shards, the last one of one row."""
    return finished_job(tmp_path, rows=prompts(PLANNED), set_=["sampling.n=2"])


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (prompts(4), r"row 4 \(counted from 0\), `r4`, is planned, and is gone"),
        ([*prompts(4), {"id": "r4", "prompt": "other", "family": "a"}], "`r4`.*its prompt changed"),
        ([*prompts(4), {"id": "r4", "prompt": "say 4", "family": "b"}], "its carried changed"),
        ([*reversed(prompts(5))], "row 0 .* was planned as `r0`, and is `r4`"),
        ([{"id": "new", "prompt": "x"}, *prompts(5)], "was planned as `r0`, and is `new`"),
    ],
)
def test_planned_rows_that_changed_are_refused(
    tmp_path: Path, job: OpenJob, rows: Sequence[object], told: str
) -> None:
    before = sorted(job.store.list(""))
    write_rows(tmp_path / "prompts.jsonl", rows)
    with pytest.raises(InputError, match=f"{told}.*prompts.jsonl was changed.*restore the input"):
        extend(job)
    assert sorted(job.store.list("")) == before


def test_an_id_that_is_planned_is_refused(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, [{"id": "new", "prompt": "x"}, {"id": "r1", "prompt": "y"}])
    with pytest.raises(InputError, match=r"line 7: the appended row 6 has the id `r1`.*row 1 of"):
        extend(job)


def test_rows_that_are_all_of_no_use_are_refused(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, [{"id": "x", "question": "?"}])
    with pytest.raises(InputError, match="no row can be used"):
        extend(job)


@pytest.mark.parametrize("setting", ["decode.max_tokens=9", "seed.value=3", "input.limit=7"])
def test_settings_that_can_change_an_output_are_refused(
    tmp_path: Path, job: OpenJob, setting: str
) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    stored, spec = stored_and_job(job.store.uri, [setting])
    with pytest.raises(FingerprintError, match=setting.partition("=")[0]):
        extend_job(stored, spec)


def test_operational_settings_may_differ(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    stored, spec = stored_and_job(job.store.uri, ["cluster.workers=3"])
    assert extend_job(stored, spec).rows == 4


def test_a_job_that_is_not_complete_is_not_extended(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    append(tmp_path, prompts(ALL)[3:])
    with pytest.raises(RevisionError, match="only a complete one is extended: finish it with"):
        extend(OpenJob(store=planned.store, plan=planned.plan))


def test_an_open_retry_comes_first(tmp_path: Path, job: OpenJob) -> None:
    retry_job(job, RetryRequest(shards=(0,)))
    append(tmp_path, prompts(ALL)[PLANNED:])
    with pytest.raises(RevisionError, match=r"revision 1 is open \(shards 0\); finish it with"):
        extend(job)


def test_an_open_extension_comes_before_a_retry(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])
    extend(job)
    with pytest.raises(RevisionError, match=r"revision 1 is open \(4 rows appended\)"):
        retry_job(open_job(job.store.uri), RetryRequest(shards=(0,)))


def files_job(folder: Path) -> tuple[OpenJob, JobSpec]:
    """A complete job over the files of a glob, without an id column."""
    (folder / "in").mkdir()
    for name in ("b", "c"):
        write_rows(folder / "in" / f"{name}.jsonl", [{"prompt": name}, {"prompt": 2 * name}])
    settings = [f"input.uri={folder}/in/*.jsonl", "input.columns.id=null"]
    spec = job_of(folder, rows=prompts(1), set_=settings)
    planned = plan_job(spec)
    finish(planned)
    return OpenJob(store=planned.store, plan=planned.plan), spec


def test_a_file_that_comes_after_the_others_can_be_added(tmp_path: Path) -> None:
    job, spec = files_job(tmp_path)
    write_rows(tmp_path / "in" / "d.jsonl", [{"prompt": "d"}])
    assert extend_job(job, spec).rows == 1
    again = open_job(job.store.uri)
    finish(again)
    assert [file.path[-7:] for file in again.plan.input] == ["b.jsonl", "c.jsonl", "d.jsonl"]
    assert load_results(job.store.uri)["id"].to_pylist()[-1] == "d.jsonl:0"


def test_a_file_between_the_others_is_refused_by_name(tmp_path: Path) -> None:
    job, spec = files_job(tmp_path)
    write_rows(tmp_path / "in" / "a.jsonl", [{"prompt": "a"}])
    with pytest.raises(InputError, match=r"the file .*a\.jsonl comes before .*b\.jsonl, "):
        extend_job(job, spec)


def test_a_file_that_is_gone_or_grew_before_the_last_is_named(tmp_path: Path) -> None:
    job, spec = files_job(tmp_path)
    grown = tmp_path / "in" / "b.jsonl"
    grown.write_text(grown.read_text() + '{"prompt": "b"}\n')
    with pytest.raises(InputError, match=r"b\.jsonl was changed, and rows of later files are"):
        extend_job(job, spec)
    grown.unlink()
    with pytest.raises(InputError, match=r"the file .*b\.jsonl is gone"):
        extend_job(job, spec)


def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, job: OpenJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path, prompts(ALL)[PLANNED:])

    def stage_slowly(*arguments: Any, **options: Any) -> Any:
        staged = stage_appended(*arguments, **options)
        append(tmp_path, [{"id": "late", "prompt": "late"}])
        return staged

    monkeypatch.setattr("jobs.extending.stage_appended", stage_slowly)
    with pytest.raises(InputError, match="was changed while it was read; extend when it is compl"):
        extend(job)
    assert open_revision(job.store, job.plan) is None
