"""`spotbatch run` around the driver: what it prints, and its exit codes."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.driver import RunResult
from jobs.driver.errors import DriverError
from jobs.driver.result import Outcome
from jobs.progress import ProgressSink
from jobs.reading import OpenJob
from manifests.fingerprints import FileIdentity
from manifests.job import JobSpec
from manifests.plan import Plan
from manifests.protocol import read_records, read_seal, seal_job
from manifests.store import Store
from tests.cli.support import complaint, spotbatch
from tests.jobs.support import FakeWork, commit, prompts, write_drafter, write_job


class FakeDriver:
    """Commits what it is asked to without Ray, unless the job is complete."""

    def __init__(self, *, outcome: Outcome = "sealed", shards: Sequence[int] | None = None) -> None:
        self.outcome = outcome
        self.shards = shards
        self.jobs: list[JobSpec] = []
        self.num_decoded = 0

    def __call__(
        self,
        store: Store,
        plan: Plan,
        job: JobSpec,
        progress: ProgressSink,
        *,
        drafter_files: Sequence[FileIdentity],
        take_over: bool = False,
    ) -> RunResult:
        self.jobs.append(job)
        if read_seal(store) is not None:
            return RunResult(outcome="complete", num_committed=len(plan.shards))
        done = read_records(store, plan)
        wanted = range(len(plan.shards)) if self.shards is None else self.shards
        todo = [shard for shard in wanted if shard not in done]
        self.num_decoded += len(todo)
        commit(OpenJob(store=store, plan=plan), shards=todo)
        if self.outcome == "sealed":
            seal_job(store, plan)
        given_up = {1: "it failed three times"} if self.outcome == "failed" else {}
        return RunResult(
            outcome=self.outcome,
            num_shards=len(plan.shards),
            num_committed=len(todo),
            given_up=given_up,
        )


def install(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> FakeDriver:
    driver = FakeDriver(**changes)
    monkeypatch.setattr("jobs.running.run_job", driver)
    return driver


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


def test_a_run_prints_its_table_and_samples_on_stdout(tmp_path: Path, driver: FakeDriver) -> None:
    result = spotbatch("run", write_job(tmp_path, rows=prompts(5)))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["state", "complete"]
    assert "rows                 5" in lines
    assert result.stdout.count(">>>") == 3
    assert "echo: say 0" in lines


def test_overrides_reach_the_driver(tmp_path: Path, driver: FakeDriver) -> None:
    job = write_job(tmp_path, rows=prompts(2))
    spotbatch("run", job, "--set", "decode.draft_budget=8", "--set", "cluster.workers=2")
    assert (driver.jobs[0].decode.draft_budget, driver.jobs[0].cluster.workers) == (8, 2)


def test_a_complete_job_is_only_reported(tmp_path: Path, driver: FakeDriver) -> None:
    job = write_job(tmp_path, rows=prompts(3))
    first = spotbatch("run", job)
    again = spotbatch("run", job)
    assert driver.num_decoded == 2
    assert again.exit_code == 0
    head, _, table = again.stdout.partition("\n")
    assert "is complete already; nothing was decoded" in head
    assert table == first.stdout


@pytest.mark.parametrize(
    ("outcome", "exit_code"), [("failed", 1), ("drained", 3), ("cancelled", 130)]
)
def test_an_unfinished_run_says_so_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, exit_code: int
) -> None:
    install(monkeypatch, outcome=outcome, shards=[0])
    result = spotbatch("run", write_job(tmp_path, rows=prompts(3)))
    assert result.exit_code == exit_code
    assert f"{outcome}: 1 of 2 shards are committed in {tmp_path / 'out'}" in result.stderr
    assert ("1 of 2 shards missing" in result.stdout) == (outcome != "cancelled")


def test_a_shard_that_was_given_up_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, outcome="failed", shards=[0])
    result = spotbatch("run", write_job(tmp_path, rows=prompts(3)))
    assert "shard 1 was given up: it failed three times" in result.stderr


def test_some_error_rows_are_no_failure(tmp_path: Path, driver: FakeDriver) -> None:
    rows = [*prompts(3), {"id": "bad", "prompt": None}]
    result = spotbatch("run", write_job(tmp_path, rows=rows))
    assert result.exit_code == 0
    assert "1, 1 NullPrompt" in result.stdout


def test_nothing_but_error_rows_is_a_failure(tmp_path: Path, driver: FakeDriver) -> None:
    rows = [{"id": "a", "prompt": None}, {"id": "b", "prompt": ""}]
    result = spotbatch("run", write_job(tmp_path, rows=rows))
    assert result.exit_code == 1
    assert "2 of 2 samples are errors" in result.stderr


def test_accuracy_is_printed_where_the_job_names_a_scorer(
    tmp_path: Path, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run_scorer.py").write_text(
        "def score(row):\n    return {'correct': row['id'] == 'r0', 'family': row['id']}\n"
    )
    job = write_job(tmp_path, rows=prompts(2), settings=["stats: {scorer: 'run_scorer:score'}"])
    result = spotbatch("run", job)
    assert "all 0.500, r0 1.000, r1 0.000" in result.stdout


def test_a_drafter_for_another_block_length_is_warned_about_and_used(
    tmp_path: Path, driver: FakeDriver
) -> None:
    drafter = write_drafter(tmp_path / "drafter", block_length=99)
    job = write_job(tmp_path, rows=prompts(2), settings=[f"drafter: {{path: {drafter}}}"])
    result = spotbatch("run", job)
    assert result.exit_code == 0
    assert "warning: " in result.stderr
    assert "trained at block length 99" in result.stderr


def test_a_changed_setting_is_refused_by_name(tmp_path: Path, driver: FakeDriver) -> None:
    job = write_job(tmp_path, rows=prompts(2))
    spotbatch("run", job)
    text = complaint(spotbatch("run", job, "--set", "decode.max_tokens=9"))
    assert "decode.max_tokens was 256, is 9" in text


def remove_weights(folder: Path) -> None:
    (folder / "target" / "model.safetensors").unlink()


def empty_input(folder: Path) -> None:
    (folder / "prompts.jsonl").write_text("")


def remove_input(folder: Path) -> None:
    (folder / "prompts.jsonl").unlink()


def other_column(folder: Path) -> None:
    (folder / "prompts.jsonl").write_text('{"id": "a", "question": "x"}\n')


def unknown_key(folder: Path) -> None:
    path = folder / "job.yaml"
    path.write_text(path.read_text() + "decode: {max_token: 4}\n")


def other_format(folder: Path) -> None:
    write_drafter(folder / "drafter", format="else")
    path = folder / "job.yaml"
    path.write_text(path.read_text() + f"drafter: {{path: {folder / 'drafter'}}}\n")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (remove_input, "prompts.jsonl: there is no such file"),
        (empty_input, "prompts.jsonl: the file is empty"),
        (other_column, "no row has a column `prompt`; it has id, question"),
        (unknown_key, "unknown key `decode.max_token`; did you mean `decode.max_tokens`?"),
        (remove_weights, "model.safetensors is missing"),
        (other_format, "is not a drafter of this format"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, driver: FakeDriver, spoil: Any, words: str
) -> None:
    job = write_job(tmp_path, rows=prompts(2))
    spoil(tmp_path)
    assert words in complaint(spotbatch("run", job))
    assert driver.jobs == []
    assert not (tmp_path / "out").exists()


def test_an_interrupt_before_the_driver_takes_over_exits_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jobs.running.run_job", interrupt)
    assert spotbatch("run", write_job(tmp_path, rows=prompts(2))).exit_code == 130


def test_a_preview_prints_samples_and_what_to_expect_and_writes_nothing(
    tmp_path: Path, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.rehearsing.open_work", lambda plan, job: FakeWork(plan))
    result = spotbatch("run", write_job(tmp_path, rows=prompts(9)), "--preview", "2")
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if line.startswith("--- ")] == [
        *("--- r0", "--- r1")
    ]
    assert "echo: say 1" in result.stdout
    assert "expected time" in result.stdout
    assert driver.jobs == []
    assert not (tmp_path / "out").exists()


def test_a_preview_of_a_planned_job_is_refused(tmp_path: Path, driver: FakeDriver) -> None:
    spotbatch("run", write_job(tmp_path, rows=prompts(2)))
    assert spotbatch("run", tmp_path / "out", "--preview", "2").exit_code == 2


def test_a_planned_job_is_run_from_its_place(tmp_path: Path, driver: FakeDriver) -> None:
    job = write_job(tmp_path, rows=prompts(3))
    assert spotbatch("plan", job, "--write").exit_code == 0
    job.unlink()
    result = spotbatch("run", tmp_path / "out", "--set", "cluster.workers=3")
    assert result.exit_code == 0
    assert driver.jobs[0].cluster.workers == 3


def test_a_time_span_is_read_before_anything_is_done(tmp_path: Path, driver: FakeDriver) -> None:
    job = write_job(tmp_path, rows=prompts(2))
    assert "write it as in 3h50m" in complaint(spotbatch("run", job, "--stop-after", "soon"))
    assert not (tmp_path / "out").exists()
    assert spotbatch("run", job, "--stop-after", "3h50m").exit_code == 0


def told(folder: Path) -> list[str]:
    """A setting that leaves a note, and where that is."""
    code = (
        "import os, sys; open(sys.argv[1], 'a').write("
        "os.environ['SPOTBATCH_OUTCOME'] + ' ' + os.environ['SPOTBATCH_EXIT_CODE'])"
    )
    command = [sys.executable, "-c", code, str(folder / "note")]
    return ["--set", f"on_finish.command={json.dumps(command)}"]


def test_whom_the_job_names_is_told_and_trouble_there_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, outcome="drained", shards=[0])
    job = write_job(tmp_path, rows=prompts(3))
    assert spotbatch("run", job, *told(tmp_path)).exit_code == 3
    assert (tmp_path / "note").read_text() == "drained 3"
    install(monkeypatch)
    result = spotbatch("run", job, "--set", "on_finish.command=[/nonexistent]")
    assert result.exit_code == 0
    assert "on_finish.command cannot be started" in result.stderr


def test_an_end_by_an_error_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise DriverError("no cluster here")

    monkeypatch.setattr("jobs.running.run_job", fail)
    job = write_job(tmp_path, rows=prompts(3))
    assert "no cluster here" in complaint(spotbatch("run", job, *told(tmp_path)))
    assert (tmp_path / "note").read_text() == "error 2"


def test_a_plan_says_what_to_expect_from_rows_decoded_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.rehearsing.open_work", lambda plan, job: FakeWork(plan))
    job = write_job(tmp_path, rows=prompts(8))
    plan = json.loads(spotbatch("plan", job, "--measure", "2", "--json").stdout)
    assert (plan["samples"], plan["expected"]["tokens"]) == (8, 40)
    assert plan["first_row"] == {"id": "r0", "prompt": "say 0"}
    assert json.loads(spotbatch("plan", job, "--json").stdout)["expected"] is None


def test_a_begun_jobs_own_shards_say_what_to_expect(tmp_path: Path, driver: FakeDriver) -> None:
    driver.shards, driver.outcome = [0], "drained"
    job = write_job(tmp_path, rows=prompts(8))
    spotbatch("run", job)
    plan = json.loads(spotbatch("plan", job, "--write", "--json").stdout)
    assert (plan["created"], plan["shards"]) == (False, 4)
    lines = spotbatch("plan", job, "--write").stdout
    assert "was planned already" in lines
