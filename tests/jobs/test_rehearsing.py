"""Previews: the job's own samples, and nothing left behind."""

import importlib
import sys
from pathlib import Path

import pytest

from jobs.errors import JobError
from jobs.rehearsing import rehearse
from jobs.report_table import format_example
from manifests.plan import Plan
from tests.jobs.support import FakeWork, job_of, prompts
from workers.errors import VersionError

NUM_ROWS = 3


@pytest.fixture(autouse=True)
def _without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.rehearsing.open_work", lambda plan, job: FakeWork(plan))


def test_the_first_rows_are_decoded_in_order_and_errors_are_shown(tmp_path: Path) -> None:
    rows = [*prompts(2), {"id": "bad", "prompt": None}, *prompts(9)[2:]]
    ticks = iter([0.0, 2.0])
    found = rehearse(job_of(tmp_path, rows=rows), num_rows=NUM_ROWS, clock=lambda: next(ticks))
    examples = found.examples()
    assert [example.id for example in examples] == ["r0", "r1", "bad"]
    assert examples[0].text == "echo: say 0"
    assert examples[2].text.startswith("[error row: NullPrompt: ")
    rate = found.rate()
    assert (rate.samples, rate.tokens, rate.seconds) == (3, 10, 2.0)


def test_nothing_is_written_where_the_job_will_be(tmp_path: Path) -> None:
    rehearse(job_of(tmp_path, rows=prompts(5)), num_rows=NUM_ROWS)
    assert not (tmp_path / "out").exists()


def test_a_limit_of_the_job_is_kept(tmp_path: Path) -> None:
    job = job_of(tmp_path, rows=prompts(5), set_=["input.limit=1"])
    assert len(rehearse(job, num_rows=NUM_ROWS).samples) == 1


def test_models_that_cannot_be_loaded_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(plan: object, job: object) -> None:
        raise VersionError("the target is odd")

    monkeypatch.setattr("jobs.rehearsing.open_work", fail)
    with pytest.raises(JobError, match="nothing can be decoded here: the target is odd"):
        rehearse(job_of(tmp_path, rows=prompts(5)), num_rows=NUM_ROWS)


def test_directories_that_a_cluster_would_ship_can_be_imported_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own_cleaning"
    own.mkdir()
    (own / "__init__.py").write_text("def keep(sample):\n    return sample['text']\n")
    found: list[object] = []

    def open_own(plan: Plan, job: object) -> FakeWork:
        found.append(importlib.import_module("own_cleaning").keep)
        return FakeWork(plan)

    monkeypatch.setattr("jobs.rehearsing.open_work", open_own)
    before = list(sys.path)
    job = job_of(tmp_path, rows=prompts(1), set_=[f"cluster.py_modules=[{own}, a.whl]"])
    assert rehearse(job, num_rows=1).examples()[0].text == "echo: say 0"
    assert sys.path == before
    assert len(found) == 1
    sys.modules.pop("own_cleaning")


def test_samples_of_one_row_are_told_apart(tmp_path: Path) -> None:
    job = job_of(tmp_path, rows=prompts(1), set_=["sampling.n=2"])
    first, second = map(format_example, rehearse(job, num_rows=1).examples())
    assert first.startswith("--- r0\n")
    assert second.startswith("--- r0 sample 1\n")
