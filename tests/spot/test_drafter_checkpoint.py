"""Drafter directories, read without torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spot.drafters.checkpoint import (
    CONFIG,
    FEATURE_VERSION,
    WEIGHTS,
    DrafterConfig,
    DrafterError,
    OrderModelShape,
    check_drafter,
    read_config,
)

BLOCK_LENGTH = 8


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """A directory that passes."""
    config = DrafterConfig(
        shape=OrderModelShape(width=16), block_length=BLOCK_LENGTH, target="t", data="d"
    )
    (tmp_path / CONFIG).write_text(config.model_dump_json())
    (tmp_path / WEIGHTS).write_bytes(b"weights")
    return tmp_path


def _change(drafter: Path, **fields: object) -> None:
    said = json.loads((drafter / CONFIG).read_text())
    (drafter / CONFIG).write_text(json.dumps(said | fields))


def test_a_drafter_for_this_block_length_passes_without_a_word(drafter: Path) -> None:
    assert check_drafter(drafter, BLOCK_LENGTH) == []


def test_what_was_written_is_read(drafter: Path) -> None:
    config = read_config(drafter)
    assert (config.shape.width, config.block_length, config.survival) == (16, 8, (0.0, 1.0))


def test_another_block_length_is_a_warning(drafter: Path) -> None:
    (warning,) = check_drafter(drafter, 32)
    assert warning.startswith(f"drafter.path {drafter} was trained at block length 8")
    assert "the target has 32" in warning


@pytest.mark.parametrize(
    ("field", "value"),
    [("format", "other"), ("version", 2), ("kind", "tree"), ("block_length", None), ("new", 1)],
)
def test_another_format_is_an_error_that_names_file_and_field(
    drafter: Path, field: str, value: object
) -> None:
    _change(drafter, **{field: value})
    with pytest.raises(DrafterError, match=rf"{drafter / CONFIG} is not .*\({field}: .*again"):
        check_drafter(drafter, BLOCK_LENGTH)


def test_another_feature_version_is_an_error_that_names_both(drafter: Path) -> None:
    _change(drafter, feature_version=FEATURE_VERSION + 1)
    with pytest.raises(
        DrafterError,
        match=rf"{drafter / CONFIG} has feature version {FEATURE_VERSION + 1}, "
        rf"this version reads {FEATURE_VERSION}",
    ):
        check_drafter(drafter, BLOCK_LENGTH)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
def test_a_missing_file_is_an_error_that_names_it(drafter: Path, name: str) -> None:
    (drafter / name).unlink()
    with pytest.raises(DrafterError, match=f"{drafter / name} is missing"):
        check_drafter(drafter, BLOCK_LENGTH)


def test_a_file_that_is_no_json_is_an_error_that_names_it(drafter: Path) -> None:
    (drafter / CONFIG).write_text("{")
    with pytest.raises(DrafterError, match=f"{drafter / CONFIG} is not a drafter"):
        check_drafter(drafter, BLOCK_LENGTH)


def test_looking_at_a_drafter_does_not_import_torch(drafter: Path) -> None:
    code = (
        "import sys\n"
        "from spot.drafters.checkpoint import check_drafter\n"
        f"check_drafter({str(drafter)!r}, 8)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
