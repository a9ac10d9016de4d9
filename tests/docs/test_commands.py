"""Every command that a document shows exists, with the options and files that it names."""

import importlib.util
import re
import subprocess
import sysconfig
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from manifests.job import JobSpec
from tests.docs.documents import CONSOLE, ROOT, all_commands, commands

COMMANDS = all_commands()
# Those of blocks with other programs among them, too.
SPOTBATCH_COMMANDS = [words for words in all_commands(CONSOLE) if words[0] == "spotbatch"]
SPOTBATCH = Path(sysconfig.get_path("scripts")) / "spotbatch"
NOT_HERE = ("out/", "s3://")  # made by commands, or elsewhere


def shown(program: str) -> list[list[str]]:
    return [words for words in COMMANDS if words[0] == program]


GROUPS = frozenset({"drafter", "target"})  # verbs with verbs of their own


@cache
def help_of(*verbs: str) -> str:
    """What ``spotbatch VERB.. --help`` prints."""
    done = subprocess.run([SPOTBATCH, *verbs, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def line(words: list[str]) -> str:
    return " ".join(words)


def test_commands_are_read_from_bash_blocks_only() -> None:
    text = (
        "```text\nnothing\n```\n```bash\n.venv/bin/spotbatch run a.yaml  # why\n\nmake demo\n```\n"
    )
    assert list(commands(text)) == [["spotbatch", "run", "a.yaml"], ["make", "demo"]]


def test_the_documents_show_commands_of_known_programs_only() -> None:
    assert {words[0] for words in COMMANDS} == {"make", "spotbatch", "python"}


@pytest.mark.parametrize("words", shown("make"), ids=line)
def test_a_shown_make_target_exists(words: list[str]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(words[1:]) <= set(targets)


@pytest.mark.parametrize("words", shown("python"), ids=line)
def test_a_shown_module_exists(words: list[str]) -> None:
    assert words[1] == "-m"
    assert importlib.util.find_spec(words[2]) is not None


@pytest.mark.parametrize("words", [w for w in shown("python") if w[2] == "pytest"], ids=line)
def test_a_shown_test_selection_names_known_markers(words: list[str]) -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    markers = {marker.partition(":")[0] for marker in options["markers"]}
    chosen = [value for option, value in pairwise(words[3:]) if option == "-m"]
    assert {word for text in chosen for word in text.split()} - {"not", "and"} <= markers


@pytest.mark.cli
@pytest.mark.parametrize("words", SPOTBATCH_COMMANDS, ids=line)
def test_a_shown_spotbatch_command_has_its_options(words: list[str]) -> None:
    text = help_of(*words[1 : 3 if words[1] in GROUPS else 2])
    assert [word for word in words[2:] if word.startswith("--") and word not in text] == []


@pytest.mark.parametrize("words", SPOTBATCH_COMMANDS, ids=line)
def test_a_shown_override_names_a_setting(words: list[str]) -> None:
    overrides = [value for option, value in pairwise(words) if option == "--set"]
    for override in overrides:
        group, _, field = override.partition("=")[0].partition(".")
        model = JobSpec.model_fields[group].annotation
        assert model is not None
        assert field in getattr(model, "model_fields", {})


@pytest.mark.parametrize("words", COMMANDS, ids=line)
def test_a_shown_file_exists(words: list[str]) -> None:
    paths = [word for word in words[1:] if "/" in word and "=" not in word]
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert [path for path in missing if not path.startswith(NOT_HERE)] == []
