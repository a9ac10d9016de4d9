"""The quickstart's files: prompts made by the generator, and a valid job over them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.quickstart import compare, make_prompts
from examples.tiny.families import FAMILIES
from examples.tiny.splits import side_of
from manifests.job import JobSpec

STATS: dict[str, Any] = {
    "samples": 24,
    "tokens": 1500,
    "nfe_per_sample": 10.0,
    "draft_free_nfe_per_sample": 64.0,
    "tokens_per_forward": 6.25,
    "tokens_per_second": None,
    "tokens_digest": "aa",
}


@pytest.fixture(scope="module")
def job(repository: Path) -> JobSpec:
    return JobSpec.model_validate(
        yaml.safe_load((repository / "examples/quickstart/job.yaml").read_text())
    )


@pytest.fixture(scope="module")
def rows(repository: Path, job: JobSpec) -> list[dict[str, Any]]:
    text = (repository / job.input.uris[0]).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_the_committed_prompts_are_what_the_generator_writes(tmp_path: Path) -> None:
    written = tmp_path / "made" / "prompts.jsonl"
    make_prompts.main(["--out", str(written)])
    assert written.read_bytes() == make_prompts.DEFAULT_PATH.read_bytes()


def test_another_seed_makes_other_prompts(tmp_path: Path) -> None:
    written = tmp_path / "prompts.jsonl"
    make_prompts.main(["--rows", "6", "--seed", "7", "--out", str(written)])
    lines = written.read_text().splitlines()
    assert len(lines) == 6
    assert not set(lines) & set(make_prompts.DEFAULT_PATH.read_text().splitlines())


def test_all_prompts_are_held_out(rows: list[dict[str, Any]]) -> None:
    assert {side_of(row["prompt"]) for row in rows} == {"held_out"}


def test_each_row_has_exactly_the_documented_columns(rows: list[dict[str, Any]]) -> None:
    assert {tuple(row) for row in rows} == {("id", "prompt", "family", "reference")}


def test_row_ids_are_unique(rows: list[dict[str, Any]]) -> None:
    assert len({row["id"] for row in rows}) == len(rows) >= 240


def test_the_families_have_equal_shares(rows: list[dict[str, Any]]) -> None:
    shares = {family: sum(row["family"] == family for row in rows) for family in FAMILIES}
    assert set(shares.values()) == {len(rows) // 3}


def test_the_job_makes_eight_shards_for_two_workers(
    rows: list[dict[str, Any]], job: JobSpec
) -> None:
    assert math.ceil(len(rows) / job.shards.rows) == 8
    assert job.cluster.workers == 2


def test_the_job_reads_columns_that_the_prompts_have(
    rows: list[dict[str, Any]], job: JobSpec
) -> None:
    assert {job.input.columns.id, job.input.columns.prompt} <= set(rows[0])


def test_the_comparison_changes_nothing_that_decides_the_tokens_but_the_budget() -> None:
    first, second = (compare.overrides(budget) for budget in compare.BUDGETS)
    differing = {key for key in first if first[key] != second[key]}
    assert differing == {"decode.draft_budget", "output.uri"}


def test_the_comparison_overrides_fields_of_the_job_file(job: JobSpec) -> None:
    for key in compare.overrides(20):
        group, _, field = key.partition(".")
        assert field in type(getattr(job, group)).model_fields


def test_the_comparison_says_when_the_tokens_are_the_same() -> None:
    printed = compare.table({20: STATS, 0: STATS})
    assert printed.splitlines()[-1].split() == ["same", "tokens", "yes"]


def test_the_comparison_says_when_the_tokens_differ() -> None:
    printed = compare.table({20: STATS, 0: STATS | {"tokens_digest": "bb"}})
    assert printed.splitlines()[-1].split() == ["same", "tokens", "NO"]


def test_the_comparison_prints_a_figure_of_each_job() -> None:
    printed = compare.table({20: STATS, 0: STATS | {"nfe_per_sample": 64.0}})
    assert "forwards per sample                    10.00       64.00" in printed


def test_a_figure_that_was_not_measured_is_a_dash() -> None:
    printed = compare.table({20: STATS, 0: STATS})
    line = next(line for line in printed.splitlines() if line.startswith("tokens per second"))
    assert line.split()[-2:] == ["-", "-"]


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Let the comparison run a shell script in place of `spotbatch`."""
    script = tmp_path / "spotbatch"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    monkeypatch.setattr(compare, "SPOTBATCH", str(script))


@pytest.mark.cli
def test_the_comparison_runs_a_job_and_reads_its_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    body = f"echo \"$@\" >> {log}; if [ $1 = stats ]; then echo '{json.dumps(STATS)}'; fi"
    stand_in(tmp_path, monkeypatch, body)
    assert compare.run(20) == STATS
    first, second = log.read_text().splitlines()
    assert first.startswith("run examples/quickstart/job.yaml --set input.limit=24 --set ")
    assert second == "stats out/quickstart-budget-20 --json"


@pytest.mark.cli
def test_the_comparison_stops_when_a_job_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "exit 3")
    with pytest.raises(SystemExit, match="ended with exit code 3"):
        compare.run(0)


def test_equal_tokens_end_the_comparison_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare, "run", lambda _: STATS)
    compare.main()
    assert "same tokens" in capsys.readouterr().out


def test_different_tokens_end_the_comparison_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare, "run", lambda budget: STATS | {"tokens_digest": str(budget)})
    with pytest.raises(SystemExit, match="different tokens"):
        compare.main()
