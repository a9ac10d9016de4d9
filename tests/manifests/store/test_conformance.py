"""What every store must do; run against each kind that there is."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manifests.errors import ManifestError, MissingError, RefusedError
from manifests.store import LocalStore, Store, open_store

NUM_PROCESSES = 8
NUM_ROUNDS = 40
BODY_BYTES = 1 << 15  # more than one write of a buffered file


@pytest.fixture(params=["local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    store = {"local": LocalStore}[request.param](tmp_path / "job")
    store.probe()
    return store


def test_an_object_comes_back_as_it_was_put(store: Store) -> None:
    store.put_if_absent("data/a", b"\x00\xff")
    assert store.get("data/a") == b"\x00\xff"


def test_an_empty_object_is_an_object(store: Store) -> None:
    store.put_if_absent("a", b"")
    assert store.get("a") == b""
    with pytest.raises(RefusedError):
        store.put_if_absent("a", b"x")


def test_a_second_put_is_refused_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    store.put_if_absent("a", b"first")
    with pytest.raises(RefusedError, match="a exists already"):
        store.put_if_absent("a", b"second")
    (tmp_path / "f").write_bytes(b"third")
    with pytest.raises(RefusedError):
        store.put_file_if_absent("a", tmp_path / "f")
    assert store.get("a") == b"first"


def test_a_file_is_put_by_its_bytes(store: Store, tmp_path: Path) -> None:
    data = bytes(range(256)) * 2000
    (tmp_path / "f").write_bytes(data)
    store.put_file_if_absent("data/a", tmp_path / "f")
    (tmp_path / "f").unlink()
    assert store.get("data/a") == data


def test_an_object_can_be_opened_as_a_local_file(store: Store) -> None:
    store.put_if_absent("data/a", b"x")
    with store.open_local("data/a") as path:
        assert path.read_bytes() == b"x"


@pytest.mark.parametrize("key", ["a", "data", "data/a/b"])
def test_an_absent_object_is_missing(store: Store, key: str) -> None:
    store.put_if_absent("data/a", b"x")
    with pytest.raises(MissingError, match=f"{key} is not in"):
        store.get(key)
    with pytest.raises(MissingError, match=f"{key} is not in"), store.open_local(key):
        pass


def test_a_listing_is_sorted_by_key_and_follows_the_prefix(store: Store) -> None:
    for key in ("b/2", "a", "b/10", "b/c/1", "bc"):
        store.put_if_absent(key, b"")
    assert store.list("") == ["a", "b/10", "b/2", "b/c/1", "bc"]
    assert store.list("b/") == ["b/10", "b/2", "b/c/1"]
    assert store.list("b/1") == ["b/10"]
    assert store.list("b") == ["b/10", "b/2", "b/c/1", "bc"]
    assert store.list("x/") == []


def test_a_listing_is_fresh(store: Store) -> None:
    assert store.list("a/") == []
    open_store(store.uri).put_if_absent("a/1", b"")
    assert store.list("a/") == ["a/1"]


def test_delete_removes_and_a_missing_object_is_success(store: Store) -> None:
    store.put_if_absent("a", b"x")
    store.delete("a")
    store.delete("a")
    assert store.list("") == []


def test_an_advisory_object_is_replaced(store: Store) -> None:
    store.put_advisory("presence/a", b"1")
    store.put_advisory("presence/a", b"2")
    assert store.get("presence/a") == b"2"
    assert store.list("") == ["presence/a"]


@pytest.mark.parametrize("key", ["../a", "/a", "a/../b", ".a", ""])
def test_no_operation_takes_a_key_that_leads_elsewhere(
    store: Store, tmp_path: Path, key: str
) -> None:
    (tmp_path / "f").write_bytes(b"")
    calls: list[Callable[[], object]] = [
        lambda: store.put_if_absent(key, b""),
        lambda: store.put_file_if_absent(key, tmp_path / "f"),
        lambda: store.put_advisory(key, b""),
        lambda: store.get(key),
        lambda: store.open_local(key).__enter__(),
        lambda: store.delete(key),
    ]
    for call in calls:
        with pytest.raises(ManifestError, match="not a key of this job"):
            call()


def test_probing_again_leaves_nothing_behind(store: Store) -> None:
    store.probe()
    assert store.list("") == []


# One racer: in each round it waits for the start, puts its own body under the key of the round, and
# says how that went. Whoever is refused must find a whole body at once. Just before a name becomes
# visible it lets the others run, so that a check made before that moment is stale by then.
RACER = """
import os, sys
from manifests.errors import RefusedError
from manifests.store import open_store

def yielding(call):
    def yield_and_call(*arguments, **options):
        os.sched_yield()
        return call(*arguments, **options)
    return yield_and_call

for name in ("link", "rename", "replace"):
    setattr(os, name, yielding(getattr(os, name)))
uri, me, num_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = open_store(uri)
for line in sys.stdin:
    key = line.strip()
    try:
        store.put_if_absent(key, bytes([me]) * num_bytes)
        answer = "won"
    except RefusedError:
        body = store.get(key)
        answer = "lost" if body == body[:1] * num_bytes else "torn"
    print(answer, flush=True)
"""


@pytest.fixture
def racers(store: Store) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that end when their input does."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, store.uri, str(me), str(BODY_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for me in range(NUM_PROCESSES)
    ]
    yield started
    for racer in started:
        racer.communicate()


def test_of_eight_racing_processes_exactly_one_wins_each_round(
    store: Store, racers: list[subprocess.Popen[str]]
) -> None:
    for index in range(NUM_ROUNDS):
        answers = _race(racers, key=f"race/{index}")
        assert sorted(answers) == ["lost"] * (NUM_PROCESSES - 1) + ["won"]
        winner = answers.index("won")
        assert store.get(f"race/{index}") == bytes([winner]) * BODY_BYTES


def _race(racers: list[subprocess.Popen[str]], *, key: str) -> list[str]:
    """Let all put under one key; what each says about it."""
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{key}\n")
        racer.stdin.flush()
    return [racer.stdout.readline().strip() for racer in racers if racer.stdout is not None]
