"""The local store: the order of its steps, and what each fault leaves behind."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import ManifestError, RefusedError, UnknownOutcomeError
from manifests.store import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A probed store."""
    store = LocalStore(tmp_path / "job")
    store.probe()
    return store


def files(store: LocalStore) -> list[str]:
    """All files that are really there, hidden ones too."""
    root = Path(store.uri)
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every durable step of the process, with the last part of each name."""
    steps: list[str] = []

    def short(path: Any) -> str:
        name = os.path.basename(os.fspath(path))
        return "temporary" if name.endswith(".tmp") else name

    def note(name: str, label: Callable[..., str]) -> None:
        real = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            steps.append(f"{name} {label(*arguments)}")
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, call)

    note("fsync", lambda descriptor: short(os.readlink(f"/proc/self/fd/{descriptor}")))
    note("link", lambda source, target: f"{short(source)} -> {short(target)}")
    note("unlink", short)
    note("replace", lambda source, target: f"{short(source)} -> {short(target)}")
    return steps


def test_publishing_syncs_the_file_links_syncs_the_directory_and_then_drops_the_temporary_name(
    store: LocalStore, trace: list[str]
) -> None:
    store.put_if_absent("a", b"x")
    assert trace == ["fsync temporary", "link temporary -> a", "fsync job", "unlink temporary"]


def test_a_new_directory_is_made_durable_before_anything_is_published_in_it(
    store: LocalStore, trace: list[str]
) -> None:
    store.put_if_absent("commits/r0/a", b"x")
    assert trace == [
        "fsync job",
        "fsync commits",
        "fsync temporary",
        "link temporary -> a",
        "fsync r0",
        "unlink temporary",
    ]


def test_a_directory_that_another_process_made_is_made_durable_too(
    store: LocalStore, trace: list[str]
) -> None:
    (Path(store.uri) / "data").mkdir()
    store.put_if_absent("data/a", b"x")
    assert trace[0] == "fsync job"


def test_who_is_refused_makes_the_winner_durable_first(store: LocalStore, trace: list[str]) -> None:
    store.put_if_absent("a", b"x")
    trace.clear()
    with pytest.raises(RefusedError):
        store.put_if_absent("a", b"y")
    assert trace == ["fsync temporary", "link temporary -> a", "fsync job", "unlink temporary"]


def test_an_advisory_object_is_synced_before_it_replaces(
    store: LocalStore, trace: list[str]
) -> None:
    store.put_advisory("a", b"x")
    assert trace == ["fsync temporary", "replace temporary -> a"]


def failing(code: int, *, after: int = 0, then: Callable[..., Any] | None = None) -> Any:
    """A system call that fails with a code, after some calls that work."""
    left = [after]

    def call(*arguments: Any, **options: Any) -> Any:
        if left[0] > 0 and then is not None:
            left[0] -= 1
            return then(*arguments, **options)
        raise OSError(code, os.strerror(code))

    return call


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_sync_of_the_file_publishes_nothing_and_is_not_repeated(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, trace: list[str], code: int
) -> None:
    monkeypatch.setattr(os, "fsync", failing(code))
    with pytest.raises(OSError, match=os.strerror(code)):
        store.put_if_absent("a", b"x")
    assert trace == ["unlink temporary"]
    assert files(store) == []


def test_a_failed_write_publishes_nothing(store: LocalStore, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        store.put_file_if_absent("a", tmp_path)
    assert files(store) == []


def test_an_interrupted_write_leaves_nothing(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.put_if_absent("a", b"x")
    assert files(store) == []


def test_a_link_that_fails_otherwise_publishes_nothing(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        store.put_if_absent("a", b"x")
    assert files(store) == []


def test_a_failed_sync_of_the_directory_is_an_unknown_outcome(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(errno.EIO, after=1, then=os.fsync))
    with pytest.raises(UnknownOutcomeError, match="a may or may not be durable"):
        store.put_if_absent("a", b"x")
    assert files(store) == ["a"]


def test_a_temporary_name_that_cannot_be_removed_does_not_undo_a_publication(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "unlink", failing(errno.EIO))
    store.put_if_absent("a", b"x")
    assert (store.list(""), store.get("a")) == (["a"], b"x")


def test_torn_temporary_files_are_invisible_and_in_nobodys_way(store: LocalStore) -> None:
    (Path(store.uri) / "data").mkdir()
    (Path(store.uri) / "data" / ".a.0000000000000000.tmp").write_bytes(b"tor")
    assert store.list("") == []
    store.put_if_absent("data/a", b"whole")
    assert store.list("data/") == ["data/a"]


def test_a_listing_does_not_follow_links_to_elsewhere(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_bytes(b"")
    (Path(store.uri) / "data").symlink_to(tmp_path / "elsewhere")
    assert store.list("") == []


def test_opening_a_store_creates_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "job")
    assert store.list("") == []
    assert not (tmp_path / "job").exists()


def test_a_probe_creates_the_directory_with_its_parents_durably(
    tmp_path: Path, trace: list[str]
) -> None:
    LocalStore(tmp_path / "a" / "b" / "c").probe()
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert trace[:3] == [f"fsync {tmp_path.name}", "fsync a", "fsync b"]


def test_a_file_system_without_hard_links_is_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    with pytest.raises(ManifestError, match="use a writable directory on a file system with hard"):
        LocalStore(tmp_path / "job").probe()
    assert files(LocalStore(tmp_path / "job")) == []


def test_a_file_system_whose_links_replace_is_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes())

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(ManifestError, match="lets a second writer replace"):
        LocalStore(tmp_path / "job").probe()
    assert files(LocalStore(tmp_path / "job")) == []


def test_a_place_that_is_a_file_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "job").write_bytes(b"")
    with pytest.raises(ManifestError, match=r"output\.uri .* cannot hold a job"):
        LocalStore(tmp_path / "job").probe()
