"""The verbs under `spotbatch drafter`: their arguments, and calibrating and diagnosing in full."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from jobs.cli.drafter import command
from jobs.cli.group import cli
from spot.drafters.checkpoint import read_config
from tests.cli.support import complaint, spotbatch
from tests.jobs.twin_jobs import shrink, write_random_drafter, write_twin_job

JOB = {"JOB.yaml", "--set"}
SURFACE = {
    "collect": JOB | {"--out"},
    "train": {
        *("--data", "--out", "--kind", "--steps", "--batch", "--learning-rate", "--max-depth"),
        *("--seed", "--width", "--layers", "--heads", "--feedforward", "--threads"),
        *("--save-every", "--force", "--plots"),
    },
    "eval": {"--data", "--drafter", "--all-samples", "--json", "--plots"},
    "calibrate": JOB
    | {"--method", "--drafter", "--samples", "--held-out", "--lookahead", "--size", "--score"},
    "diagnose": JOB | {"--drafter", "--samples", "--held-out", "--json", "--plots"},
}


def test_there_are_exactly_these_verbs() -> None:
    assert set(command.commands) == set(SURFACE)


@pytest.mark.parametrize("name", SURFACE)
def test_a_verb_has_exactly_these_arguments_and_explains_them(name: str) -> None:
    verb = command.commands[name]
    options = [param for param in verb.params if isinstance(param, click.Option)]
    arguments = {p.human_readable_name for p in verb.params if isinstance(p, click.Argument)}
    assert {option.opts[0] for option in options} | arguments == SURFACE[name]
    assert verb.help
    assert all(option.help for option in options)
    assert CliRunner().invoke(cli, ["drafter", name, "--help"]).exit_code == 0


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


@pytest.fixture(scope="module")
def job_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_twin_job(Path(tmp_path_factory.mktemp("job")))


def test_calibrating_prints_a_table_and_writes_the_drafter(job_file: Path, tmp_path: Path) -> None:
    drafter = write_random_drafter(tmp_path / "drafter")
    result = spotbatch(
        *("drafter", "calibrate", job_file, "--method", "survival", "--drafter", drafter),
        *("--samples", "2"),
    )
    assert result.exit_code == 0, result.output
    names, greedy, sampled = (line.split() for line in result.stdout.splitlines())
    assert names[0] == "constants"
    config = read_config(drafter)
    for row, (offset, slope) in ((greedy, config.greedy_survival), (sampled, config.survival)):
        assert row[3:5] == [f"{offset:.3f}", f"{slope:.3f}"]
    assert "survival: 2 of 2 samples" in result.stderr


def test_a_directory_without_a_drafter_is_one_sentence(job_file: Path, tmp_path: Path) -> None:
    result = spotbatch(
        *("drafter", "calibrate", job_file, "--method", "survival", "--drafter", tmp_path)
    )
    assert "drafter.json is missing" in complaint(result)


def test_diagnosing_prints_tables_and_writes_figures(job_file: Path, tmp_path: Path) -> None:
    drafter, figures = write_random_drafter(tmp_path / "drafter"), tmp_path / "figures.json"
    result = spotbatch(
        *("drafter", "diagnose", job_file, "--drafter", drafter, "--samples", "2"),
        *("--json", figures, "--plots", tmp_path / "plots"),
    )
    assert result.exit_code == 0, result.output
    found = json.loads(figures.read_text())
    assert found["method"] == "spot"
    figures_shown, blocks, masses = result.stdout.split("\n\n")
    assert f"rejections  {found['first_rejections']['rejections']}".split() in [
        line.split() for line in figures_shown.splitlines()
    ]
    assert len(blocks.splitlines()) == 1 + len(found["blocks"])
    assert len(masses.splitlines()) == 1 + len(found["masses"])
    assert {p.name for p in (tmp_path / "plots").iterdir()} == {
        *("mass_calibration.svg", "accepted_by_block.svg")
    }


def test_diagnosing_without_a_drafter_is_one_sentence(job_file: Path) -> None:
    assert "nothing is drafted in this job" in complaint(spotbatch("drafter", "diagnose", job_file))
