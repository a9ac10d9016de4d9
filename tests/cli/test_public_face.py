"""`import spotbatch` and the `spotbatch` command: whose packages they open, and what they load."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import spotbatch
from jobs import api
from tests.jobs.support import finished_job, prompts

COMMAND = Path(sysconfig.get_path("scripts")) / "spotbatch"


def test_the_api_has_exactly_the_exported_names() -> None:
    public = {name for name in vars(api) if not name.startswith("_") and name[0] != "@"}
    assert set(api.__all__) <= public
    assert api.__all__ == sorted(api.__all__)
    assert {*api.__all__, "main", "foreign_package"} == set(dir(spotbatch))


def test_exported_names_are_the_apis_own() -> None:
    assert all(getattr(spotbatch, name) is getattr(api, name) for name in api.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        spotbatch.nonsense  # noqa: B018


def test_the_packages_under_test_are_ours() -> None:
    assert spotbatch.foreign_package() is None


def test_packages_of_another_installation_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spotbatch, "_HOME", tmp_path)
    sentence = spotbatch.foreign_package()
    assert sentence is not None
    assert sentence.startswith("`jobs` would be imported from ")
    with pytest.raises(ImportError, match="would be imported from"):
        spotbatch.load_job  # noqa: B018


def test_the_command_refuses_foreign_packages_with_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spotbatch, "_HOME", tmp_path)
    with pytest.raises(SystemExit) as caught:
        spotbatch.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("Error: `jobs` would be imported from ")


def command(
    *arguments: str | Path, cwd: Path, python_path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    extra = {} if python_path is None else {"PYTHONPATH": str(python_path)}
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=cwd,
        env=os.environ | extra,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A directory with packages of our names."""
    folder = tmp_path / "foreign"
    for name in ("jobs", "workers"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise SystemExit('foreign package imported')\n")
    return folder


@pytest.mark.cli
def test_the_command_works_from_a_directory_with_packages_of_our_names(
    foreign: Path, tmp_path: Path
) -> None:
    finished_job(tmp_path, rows=prompts(2))
    result = command("status", tmp_path / "out", cwd=foreign)
    assert (result.returncode, result.stderr) == (0, "")
    assert "complete" in result.stdout


@pytest.mark.cli
def test_foreign_packages_on_the_path_are_one_sentence_and_exit_code_two(
    foreign: Path, tmp_path: Path
) -> None:
    result = command("status", tmp_path, cwd=tmp_path, python_path=foreign)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert f"`jobs` would be imported from {foreign / 'jobs'}" in line


@pytest.mark.cli
@pytest.mark.parametrize(
    "verb",
    [
        *("validate", "plan", "status", "list", "logs", "inspect", "stats", "report", "verify"),
        "files",
    ],
)
def test_a_verb_without_a_model_loads_neither_torch_nor_ray(verb: str, tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(2))
    subject = tmp_path / ("job.yaml" if verb in ("validate", "plan") else "out")
    code = (
        "import sys; from jobs.cli.group import cli; "
        f"cli([{verb!r}, {str(subject)!r}], standalone_mode=False); "
        "sys.exit(str({'torch', 'ray', 'transformers'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "set()"


@pytest.mark.cli
def test_help_loads_neither_torch_nor_ray(tmp_path: Path) -> None:
    code = (
        "import sys; import spotbatch; from jobs.cli.group import cli; "
        "cli(['--help'], standalone_mode=False); "
        "sys.exit(str({'torch', 'ray', 'transformers'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "set()"


@pytest.mark.cli
def test_the_api_loads_neither_torch_nor_ray_to_read_a_job(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(2))
    code = (
        "import sys, spotbatch; "
        f"assert spotbatch.load_results({str(tmp_path / 'out')!r}).num_rows == 2; "
        f"assert spotbatch.status({str(tmp_path / 'out')!r}).state == 'complete'; "
        "sys.exit(str({'torch', 'ray', 'transformers'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "set()"
