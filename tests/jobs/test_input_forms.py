"""The same rows give the same plan and the same tokens, whatever form the input has."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from jobs.planning import PlannedJob, plan_job, preview_job
from jobs.reading import OpenJob, read_committed
from jobs.stats import job_stats
from manifests.committed import committed_rows
from manifests.job import JobSpec
from tests.jobs.inputs.forms import FORMS, rows
from tests.jobs.support import commit, write_target
from tests.jobs.twin_jobs import shrink
from tests.twins import write_sdar_twin
from workers.runtime import Runtime, load_runtime
from workers.work import GenerateWork

NUM_PLANNED, NUM_DECODED = 2000, 24


def job_of(folder: Path, form: str, *, target: Path, count: int) -> JobSpec:
    """A job over so many rows in one form."""
    folder.mkdir()
    groups = {
        "target": {"path": str(target)},
        "output": {"uri": str(folder / "out"), "carry": "none"},
        "decode": {"max_tokens": 10},
    }
    return JobSpec.model_validate(groups | FORMS[form](folder, rows(count)))


def test_every_form_of_an_input_gives_the_same_planned_rows(tmp_path: Path) -> None:
    target = write_target(tmp_path / "target")
    digests = {}
    for form in FORMS:
        job = job_of(tmp_path / form, form, target=target, count=NUM_PLANNED)
        staged = preview_job(job).staged
        assert (staged.rows, staged.trouble) == (NUM_PLANNED, {})
        digests[form] = staged.digest.hexdigest()
    assert len(set(digests.values())) == 1, digests


def decode(planned: PlannedJob, runtime: Runtime) -> str:
    """Decode and commit the whole job with a loaded target; the digest of its tokens."""
    work = GenerateWork(planned.plan, runtime=runtime)
    commit(planned, shards=range(len(planned.plan.shards)), work=work)
    return job_stats(OpenJob(store=planned.store, plan=planned.plan)).tokens_digest


@pytest.mark.models
def test_every_form_of_an_input_gives_the_same_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch)
    torch.set_num_threads(1)
    target = write_sdar_twin(tmp_path / "twin")
    digests, runtime = {}, None
    for form in FORMS:
        planned = plan_job(job_of(tmp_path / form, form, target=target, count=NUM_DECODED))
        runtime = runtime or load_runtime(planned.plan.job)
        digests[form] = decode(planned, runtime)
    assert len(set(digests.values())) == 1, digests


OWN = [(5, 0.0, 1), (12, 1.0, 2), (20, 0.5, 3), (None, None, None)]
JOBS = (9, 0.25, 7)


@pytest.mark.models
def test_a_row_with_settings_of_its_own_decodes_as_in_a_job_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch)
    torch.set_num_threads(1)
    target = write_sdar_twin(tmp_path / "twin")
    lines = [
        f"r{i},say {i},{','.join('' if value is None else str(value) for value in own)}"
        for i, own in enumerate(OWN)
    ]
    columns = {"id": "id", "max_tokens": "n", "temperature": "t", "seed": "s"}
    table = {"input": {"uri": _write(tmp_path / "all", *lines), "columns": columns}}
    together = _tokens(target, JOBS, **table)
    for i, (own, line) in enumerate(zip(OWN, lines, strict=True)):
        settings = [job if value is None else value for value, job in zip(own, JOBS, strict=True)]
        alone = {"input": {"uri": _write(tmp_path / f"{i}", line), "columns": {"id": "id"}}}
        assert _tokens(target, settings, **alone) == {f"r{i}": together[f"r{i}"]}


def _write(folder: Path, *lines: str) -> str:
    folder.mkdir()
    path = folder / "p.csv"
    path.write_text("\n".join(["id,prompt,n,t,s", *lines]) + "\n")
    return str(path)


def _tokens(target: Path, settings: Sequence[Any], **source: Any) -> dict[str, list[int]]:
    """Token ids by row of a whole job."""
    max_tokens, temperature, seed = settings
    groups = {
        "target": {"path": str(target)},
        "output": {"uri": str(Path(source["input"]["uri"]).parent / "out")},
        "decode": {"max_tokens": max_tokens, "temperature": temperature, "ignore_eos": True},
        "seed": {"value": seed, "scope": "row"},
    }
    planned = plan_job(JobSpec.model_validate(groups | source))
    work = GenerateWork(planned.plan, runtime=load_runtime(planned.plan.job))
    commit(planned, shards=[0], work=work)
    records = read_committed(OpenJob(store=planned.store, plan=planned.plan)).records
    (table,) = committed_rows(planned.store, planned.plan, records)
    return dict(zip(table["id"].to_pylist(), table["token_ids"].to_pylist(), strict=True))
