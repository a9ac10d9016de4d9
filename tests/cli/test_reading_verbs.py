"""The verbs that read a job, and those that only look at a job file."""

import json
import os
from pathlib import Path

import pytest

from jobs.driver import RunResult
from jobs.planning import PlannedJob
from jobs.reading import OpenJob
from manifests.job import JobSpec
from manifests.protocol import seal_job
from tests.cli.support import complaint, spotbatch
from tests.jobs.support import (
    commit,
    finish,
    finished_job,
    planned_job,
    plant_loser,
    prompts,
    write_drafter,
    write_job,
)


@pytest.mark.parametrize("verb", ["status", "stats", "verify", "files", "logs", "inspect"])
def test_a_place_without_a_job_is_one_sentence(tmp_path: Path, verb: str) -> None:
    assert "there is no job here" in complaint(spotbatch(verb, tmp_path / "nothing"))


def test_status_prints_names_and_values(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    result = spotbatch("status", tmp_path / "out")
    assert "state            complete" in result.stdout.splitlines()
    assert "shards           2 of 2" in result.stdout.splitlines()


def test_status_as_json(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    commit(planned, shards=[0])
    status = json.loads(spotbatch("status", tmp_path / "out", "--json").stdout)
    assert (status["state"], status["shards"], status["shards_total"]) == ("stopped", 1, 2)
    assert status["job"] == planned.plan.job_id


def test_stats_as_json_and_as_a_table(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    stats = json.loads(spotbatch("stats", tmp_path / "out", "--json").stdout)
    assert (stats["rows"], stats["tokens"], stats["accuracy"]) == (3, 15, None)
    assert "tokens               15" in spotbatch("stats", tmp_path / "out").stdout.splitlines()


@pytest.fixture
def scored_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenJob:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "verb_scorer.py").write_text(
        "def yes(row):\n    return {'correct': True}\ndef no(row):\n    return {'correct': False}\n"
    )
    settings = ["stats: {scorer: 'verb_scorer:yes'}"]
    return finished_job(tmp_path, rows=prompts(2), settings=settings)


@pytest.mark.parametrize(
    ("options", "accuracy"),
    [([], {"all": 1.0}), (["--scorer", "verb_scorer:no"], {"all": 0.0}), (["--no-score"], None)],
)
def test_stats_score_with_the_jobs_scorer_another_one_or_none(
    scored_job: OpenJob, options: list[str], accuracy: dict[str, float] | None
) -> None:
    stats = json.loads(spotbatch("stats", scored_job.store.uri, "--json", *options).stdout)
    assert stats["accuracy"] == accuracy


def test_two_ways_to_score_contradict_each_other(scored_job: OpenJob) -> None:
    result = spotbatch("stats", scored_job.store.uri, "--no-score", "--scorer", "a:b")
    assert result.exit_code == 2


def test_files_are_keys_in_input_order_or_whole_paths(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(5))
    commit(planned, shards=[2, 0, 1])
    seal_job(planned.store, planned.plan)
    keys = spotbatch("files", tmp_path / "out").stdout.splitlines()
    assert [key.split("-")[0] for key in keys] == [f"data/0000000{i}" for i in range(3)]
    paths = spotbatch("files", tmp_path / "out", "--absolute").stdout.splitlines()
    assert paths == [str(tmp_path / "out" / key) for key in keys]
    assert all(Path(path).is_file() for path in paths)


def test_verify_passes_a_good_job(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    result = spotbatch("verify", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (0, "2 of 2 shards, 3 samples: no finding\n")


def test_verify_exits_with_one_on_a_finding(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    next((tmp_path / "out" / "data").iterdir()).write_bytes(b"x")
    result = spotbatch("verify", tmp_path / "out")
    assert result.exit_code == 1
    assert result.stdout.startswith("finding: data/")


def test_verify_takes_a_damaged_plan_for_a_finding(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(1))
    (tmp_path / "out" / "plan.json").write_text("{")
    result = spotbatch("verify", tmp_path / "out")
    assert result.exit_code == 1
    assert result.stdout.startswith("finding: plan.json: ")


def test_verify_as_json(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(1))
    value = json.loads(spotbatch("verify", tmp_path / "out", "--json").stdout)
    assert (value["passed"], value["findings"]) == (True, [])


def test_a_damaged_plan_is_exit_code_two_for_other_verbs(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(1))
    (tmp_path / "out" / "plan.json").write_text("{")
    assert "plan.json" in complaint(spotbatch("status", tmp_path / "out"))


def test_validate_counts_rows_and_warns(tmp_path: Path) -> None:
    drafter = write_drafter(tmp_path / "drafter", block_length=99)
    rows = [*prompts(3), {"id": "bad", "prompt": None}]
    job = write_job(tmp_path, rows=rows, settings=[f"drafter: {{path: {drafter}}}"])
    result = spotbatch("validate", job)
    assert result.exit_code == 0
    assert "is valid: 4 rows in 2 shards, 1 of them will be error rows, 1 NullPrompt" in (
        result.stdout
    )
    assert "warning: drafter.path" in result.stderr
    assert "first error row: prompts.jsonl, line 4: column `prompt` is null" in result.stderr
    assert not (tmp_path / "out").exists()


def test_validate_refuses_what_run_would_refuse(tmp_path: Path) -> None:
    job = write_job(tmp_path, rows=prompts(1))
    text = complaint(spotbatch("validate", job, "--set", "target.path=absent"))
    assert "absent is not a directory" in text


def test_plan_writes_nothing_unless_told(tmp_path: Path) -> None:
    job = write_job(tmp_path, rows=prompts(3))
    result = spotbatch("plan", job, "--set", "sampling.n=2")
    assert "samples     6 to decode" in result.stdout.splitlines()
    assert "tokens      at most 1536" in result.stdout.splitlines()
    assert not (tmp_path / "out").exists()


def test_plan_write_creates_the_plan_once(tmp_path: Path) -> None:
    job = write_job(tmp_path, rows=prompts(3))
    assert spotbatch("plan", job, "--write").exit_code == 0
    status = json.loads(spotbatch("status", tmp_path / "out", "--json").stdout)
    assert status["state"] == "planned"
    assert "was planned already" in spotbatch("plan", job, "--write").stdout


def test_missing_shards_are_printed_alone(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(8))
    commit(planned, shards=[1])
    assert spotbatch("status", tmp_path / "out", "--missing").stdout == "0,2-3\n"
    assert "missing shards   0,2-3" in spotbatch("status", tmp_path / "out").stdout.splitlines()


def test_watching_elsewhere_than_on_a_terminal_prints_lines(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    watched = spotbatch("status", tmp_path / "out", "--watch")
    assert watched.stdout == "complete: 2 of 2 shards, 3 of 3 rows, 0 errors\n"
    (line,) = spotbatch("status", tmp_path / "out", "--watch", "--json").stdout.splitlines()
    assert json.loads(line)["state"] == "complete"


def test_list_has_a_line_for_every_job_and_names_damage(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    finished_job(tmp_path / "a", rows=prompts(3))
    (tmp_path / "b" / "plan.json").write_text("{}")
    heads, complete, damaged = spotbatch("list", tmp_path).stdout.splitlines()
    assert heads.split() == ["job", "state", "shards", "rows", "errors", "updated", "uri"]
    assert complete.split()[1:5] == ["complete", "2/2", "3/3", "0"]
    assert damaged.split()[1] == "damaged"
    listed = json.loads(spotbatch("list", tmp_path, "--json").stdout)["jobs"]
    assert "plan.json" in listed[1]["problem"]


def test_a_root_without_jobs_prints_no_data(tmp_path: Path) -> None:
    result = spotbatch("list", tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no job here" in result.stderr


def test_inspect_prints_samples_and_json_lines(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=[*prompts(3), {"id": "bad", "prompt": None}])
    assert len(spotbatch("inspect", tmp_path / "out", "-n", "2").stdout.splitlines()) == 2 * 4
    (line,) = spotbatch("inspect", tmp_path / "out", "--errors", "--json").stdout.splitlines()
    assert json.loads(line)["id"] == "bad"
    assert "write them as in" in complaint(spotbatch("inspect", tmp_path / "out", "--shards", "x"))


def test_logs_of_a_job_without_trouble_are_empty(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    assert spotbatch("logs", tmp_path / "out").stdout == ""


@pytest.mark.parametrize(
    "options", [("--driver", "--shards", "1"), ("--driver", "--json"), ("--address", "http://h:1")]
)
def test_logs_of_the_driver_and_of_attempts_are_asked_for_apart(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert spotbatch("logs", tmp_path, *options).exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    assert "_SPOTBATCH_COMPLETE" in spotbatch("completion", shell).stdout


def test_files_of_a_job_that_is_not_complete_are_refused(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(5))
    commit(planned, shards=[2, 0, 1])
    assert "is not complete, so nothing of it counts yet" in complaint(
        spotbatch("files", tmp_path / "out")
    )


def test_gc_prints_what_it_deletes_and_a_dry_run_deletes_nothing(tmp_path: Path) -> None:
    key = plant_loser(finished_job(tmp_path, rows=prompts(3)))
    path = tmp_path / "out" / key
    for options in (["--dry-run"], []):
        assert path.exists()
        assert spotbatch("gc", tmp_path / "out", *options).stdout.splitlines() == [key]
    assert not path.exists()
    again = spotbatch("gc", tmp_path / "out")
    assert (again.stdout, again.stderr) == ("", "0 files were deleted\n")


def test_export_prints_the_files_that_it_made(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    result = spotbatch("export", tmp_path / "out", tmp_path / "clean", "--rows-per-file", "1")
    assert all(Path(line).is_file() for line in result.stdout.splitlines())
    assert result.stderr == "3 rows in 2 files, 2 of them written now\n"
    value = json.loads(
        spotbatch(
            "export", tmp_path / "out", tmp_path / "clean", "--rows-per-file", "1", "--json"
        ).stdout
    )
    assert [file["rows"] for file in value["files"]] == [2, 1]


def test_export_overwrites_nothing(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    assert "lies in the job's own directory" in complaint(
        spotbatch("export", tmp_path / "out", tmp_path / "out" / "clean")
    )


@pytest.mark.parametrize("options", [[], ["--failed", "--errors"], ["--errors", "--shards", "1"]])
def test_retry_wants_exactly_one_choice(tmp_path: Path, options: list[str]) -> None:
    result = spotbatch("retry", tmp_path / "out", *options)
    assert result.exit_code == 2
    assert "with exactly one of" in result.stderr


def test_retry_without_anything_to_retry_says_so(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(3))
    result = spotbatch("retry", tmp_path / "out", "--errors")
    assert (result.exit_code, result.stdout) == (
        0,
        "nothing to retry: no row to decode again (errors)\n",
    )


def test_retry_runs_the_revision_and_prints_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = finished_job(tmp_path, rows=prompts(3), set_=["decode.max_tokens=4"])

    def run_here(planned: PlannedJob, job: JobSpec, **options: object) -> RunResult:
        assert job.decode.max_tokens == 9
        assert options["take_over"] is True
        finish(planned)
        return RunResult(outcome="sealed", num_shards=2, num_committed=2)

    monkeypatch.setattr("jobs.running.run_planned", run_here)
    result = spotbatch(
        *("retry", job.store.uri, "--finish-reason", "length", "--set", "decode.max_tokens=9"),
        "--take-over",
    )
    assert result.exit_code == 0
    assert "retrying 2 shards: finish reason length, decode.max_tokens=9" in result.stderr
    stats = json.loads(spotbatch("stats", job.store.uri, "--json").stdout)
    assert (stats["tokens"], stats["finish_reasons"]) == (15, {"stop": 3})


def test_gc_sweeps_what_a_killed_writer_left(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(1))
    torn = tmp_path / "out" / "data" / ".x.parquet.0123456789abcdef.tmp"
    torn.write_bytes(b"torn")
    spotbatch("gc", tmp_path / "out")
    assert torn.exists()
    os.utime(torn, (0, 0))
    spotbatch("gc", tmp_path / "out", "--dry-run")
    assert torn.exists()
    spotbatch("gc", tmp_path / "out")
    assert not torn.exists()


def test_plan_tells_what_a_filter_dropped_and_what_rows_ask_for(tmp_path: Path) -> None:
    rows = [{"id": f"r{i}", "prompt": "x", "n": 10 * i} for i in range(1, 4)]
    job = write_job(tmp_path, rows=rows)
    settings = ("--set", "input.filter=n > 10", "--set", "input.columns.max_tokens=n")
    lines = [line.split() for line in spotbatch("plan", job, *settings).stdout.splitlines()]
    assert ["rows", "2", "(1", "more", "dropped", "by", "input.filter)"] in lines
    assert ["tokens", "at", "most", "50"] in lines
    said = json.loads(spotbatch("plan", job, *settings, "--json").stdout)
    stored = json.loads(spotbatch("plan", job, *settings, "--write", "--json").stdout)
    assert (said["max_tokens"], stored["max_tokens"]) == (50, None)
    assert said["rows_sha256"] == stored["rows_sha256"]
