"""Sweeping: what a killed process left, and nothing of the living or of the job."""

import os
from pathlib import Path

import pytest

from manifests.store import LocalStore
from manifests.store.sweeping import sweep_temporaries

HEX = "0123456789abcdef"


def leave(path: Path, *, age_s: float) -> str:
    """A file that was last written to so long before moment 1000."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"torn")
    os.utime(path, (1000 - age_s, 1000 - age_s))
    return path.name


def test_stale_temporary_files_go_and_all_others_stay(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put_if_absent("data/a.parquet", b"whole")
    leave(tmp_path / "data" / f".a.parquet.{HEX}.tmp", age_s=200)
    leave(tmp_path / f".probe-{HEX}", age_s=200)
    young = leave(tmp_path / "data" / f".b.parquet.{HEX}.tmp", age_s=50)
    foreign = leave(tmp_path / ".config.tmp", age_s=200)
    (tmp_path / f".link.{HEX}.tmp").symlink_to(tmp_path / "data" / "a.parquet")
    swept = sweep_temporaries(tmp_path, before=900)
    assert swept == [f".probe-{HEX}", f"data/.a.parquet.{HEX}.tmp"]
    left = {path.name for path in tmp_path.rglob("*") if not path.is_dir()}
    assert left == {"a.parquet", young, foreign, f".link.{HEX}.tmp"}


def test_a_file_that_is_gone_when_it_is_looked_at_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f".a.{HEX}.tmp"
    leave(path, age_s=200)
    real = Path.is_symlink

    def vanish(self: Path) -> bool:
        found = real(self)
        self.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_symlink", vanish)
    assert sweep_temporaries(tmp_path, before=900) == []
