"""`spotbatch target inspect`: values, checks and exit codes."""

import json
from pathlib import Path

import click
import pytest
import torch

from jobs.cli.target import command
from spot.attention import KVPages
from tests.checkpoints import write_released
from tests.cli.support import complaint, spotbatch

pytestmark = pytest.mark.cli
OPTIONS = {"DIR", "--block-length", "--dtype", "--device", "--numerics", "--text", "--no-check"}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_released("sdar", Path(tmp_path_factory.mktemp("sdar")))


def test_inspecting_has_exactly_these_arguments() -> None:
    verb = command.commands["inspect"]
    names = {
        p.human_readable_name if isinstance(p, click.Argument) else p.opts[0] for p in verb.params
    }
    assert names == OPTIONS | {"--json"}
    assert all(p.help for p in verb.params if isinstance(p, click.Option))


def test_values_and_checks_are_printed(checkpoint: Path) -> None:
    result = spotbatch("target", "inspect", checkpoint)
    assert result.exit_code == 0, result.output
    assert "mask id " in result.stdout
    assert "ok: a state among others equals the state alone" in result.stdout


def test_json_has_the_same(checkpoint: Path) -> None:
    result = spotbatch("target", "inspect", checkpoint, "--json", "--dtype", "float64")
    said = json.loads(result.stdout)
    assert (said["family"], said["block length"], said["dtype"]) == ("sdar", 8, "float64")
    assert [check["passed"] for check in said["checks"]] == [True, True, True, None]


def test_a_failed_check_is_exit_code_one(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KVPages, "write", lambda self, layer, pages, keys, values: None)
    result = spotbatch("target", "inspect", checkpoint)
    assert result.exit_code == 1
    assert "FAILED: cached keys and values" in result.stdout


def test_a_directory_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    result = spotbatch("target", "inspect", tmp_path)
    assert complaint(result).startswith("Error: ")
    assert "config.json is missing: give a complete model directory" in complaint(result)
