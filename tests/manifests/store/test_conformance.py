"""What every store must do; run against each kind that there is."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest

from manifests.errors import ManifestError, MissingError, RefusedError
from manifests.store import LocalStore, MemoryStore, Store, open_store
from tests.manifests.hostile_keys import HOSTILE_KEYS

NUM_RACERS = 8
NUM_ROUNDS = 300
BODY_BYTES = 1 << 15  # more than one write of a buffered file
S3 = pytest.param("s3", marks=pytest.mark.s3)


@pytest.fixture(params=["memory", "local", S3])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    return new_store(request, tmp_path)


@pytest.fixture(params=["local", S3])
def shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind that processes can share."""
    return new_store(request, tmp_path)


def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A probed store of the kind that the test asks for."""
    store: Store
    if request.param == "memory":
        store = MemoryStore()
    elif request.param == "local":
        store = LocalStore(tmp_path / "job")
    else:
        store = open_store(f"s3://{request.getfixturevalue('s3_bucket')}/a job/x=1")
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
    with pytest.raises(RefusedError, match=r"^a .*exists already"):
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


def test_a_reader_gives_any_part_of_an_object(store: Store) -> None:
    data = bytes(range(256)) * 5000
    store.put_if_absent("data/a", data)
    with store.open_reader("data/a") as reader:
        assert (reader.seek(-300, 2), reader.read(10)) == (len(data) - 300, data[-300:-290])
        assert (reader.seek(7), reader.read(3), reader.tell()) == (7, data[7:10], 10)
        assert (reader.seek(-2, 1), reader.read()) == (8, data[8:])
        assert reader.read() == b""


@pytest.mark.parametrize("key", ["a", "data", "data/a/b"])
def test_an_absent_object_is_missing(store: Store, key: str) -> None:
    store.put_if_absent("data/a", b"x")
    with pytest.raises(MissingError, match=f"{key} is not in"):
        store.get(key)
    for open_it in (store.open_local, store.open_reader):
        with pytest.raises(MissingError, match=f"{key} is not in"), open_it(key):
            pass


def test_a_listing_is_sorted_by_key_and_follows_the_prefix(store: Store) -> None:
    for key in ("b/2", "a", "b/10", "b/c/1", "bc"):
        store.put_if_absent(key, b"")
    assert store.list("") == ["a", "b/10", "b/2", "b/c/1", "bc"]
    assert store.list("b/") == ["b/10", "b/2", "b/c/1"]
    assert store.list("b/1") == ["b/10"]
    assert store.list("b") == ["b/10", "b/2", "b/c/1", "bc"]
    assert store.list("x/") == []


def test_a_listing_and_a_read_are_fresh(shared_store: Store) -> None:
    assert shared_store.list("a/") == []
    with pytest.raises(MissingError):
        shared_store.get("a/1")
    other = open_store(shared_store.uri)
    other.put_if_absent("a/1", b"")
    assert (shared_store.list("a/"), shared_store.get("a/1")) == (["a/1"], b"")
    other.delete("a/1")
    assert shared_store.list("a/") == []


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


def test_no_operation_takes_a_key_that_leads_elsewhere(store: Store, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    calls: list[Callable[[str], object]] = [
        lambda key: store.put_if_absent(key, b""),
        lambda key: store.put_file_if_absent(key, tmp_path / "f"),
        lambda key: store.put_advisory(key, b""),
        lambda key: store.get(key),
        lambda key: store.open_local(key).__enter__(),
        lambda key: store.open_reader(key).__enter__(),
        lambda key: store.delete(key),
    ]
    for key in HOSTILE_KEYS:
        for call in calls:
            with pytest.raises(ManifestError, match="not a key of this job"):
                call(key)
    assert store.list("") == []


def test_probing_again_leaves_nothing_behind(store: Store) -> None:
    store.probe()
    assert store.list("") == []


# One racer: in each round it waits for the start, puts its own body under the key of the round, and
# says how that went. Whoever is refused must find a whole body at once; every fifth round looks.
# Just before a name becomes visible it lets the others run, so that a check made before that moment
# is stale by then.
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
        body = b"" if int(key.rpartition("/")[2]) % 5 else store.get(key)
        answer = "lost" if not body or body == body[:1] * num_bytes else "torn"
    print(answer, flush=True)
"""


@pytest.fixture
def racers(shared_store: Store) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that end when their input does."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, shared_store.uri, str(me), str(BODY_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for me in range(NUM_RACERS)
    ]
    yield started
    for racer in started:
        racer.communicate()


@pytest.mark.timeout(600)
def test_of_eight_racing_processes_exactly_one_wins_each_round(
    shared_store: Store, racers: list[subprocess.Popen[str]]
) -> None:
    for index in range(NUM_ROUNDS):
        answers = _race(racers, key=f"race/{index}")
        assert sorted(answers) == ["lost"] * (NUM_RACERS - 1) + ["won"]
        winner = answers.index("won")
        assert shared_store.get(f"race/{index}") == bytes([winner]) * BODY_BYTES


def _race(racers: list[subprocess.Popen[str]], *, key: str) -> list[str]:
    """Let all put under one key; what each says about it."""
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{key}\n")
        racer.stdin.flush()
    return [racer.stdout.readline().strip() for racer in racers if racer.stdout is not None]


def test_of_eight_racing_threads_exactly_one_wins_each_round() -> None:
    store, together = MemoryStore(), Barrier(NUM_RACERS)

    def race(me: int) -> list[int]:
        won = []
        for index in range(NUM_ROUNDS):
            together.wait()
            with suppress(RefusedError):
                store.put_if_absent(f"race/{index}", bytes([me]))
                won.append(index)
        return won

    with ThreadPoolExecutor(NUM_RACERS) as threads:
        wins = list(threads.map(race, range(NUM_RACERS)))
    assert sorted(index for won in wins for index in won) == list(range(NUM_ROUNDS))
    for me, won in enumerate(wins):
        assert all(store.get(f"race/{index}") == bytes([me]) for index in won)
