"""The node's cache of models: fetched once, checked, kept while used, limited."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workers.errors import ModelFilesError
from workers.model_cache import CachedFile, ModelCache

Contents = dict[str, bytes]


class Source:
    """Where files are fetched from."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.fetched: list[str] = []

    def __call__(self, name: str, target: Path) -> None:
        self.fetched.append(name)
        target.write_bytes(self.contents[name])


def facts(contents: Contents) -> list[CachedFile]:
    return [
        CachedFile(name=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in contents.items()
    ]


@pytest.fixture
def open_cache(tmp_path: Path) -> Callable[..., ModelCache]:
    """Opens the cache, as each process does."""

    def open_cache(*, limit_bytes: int = 1000) -> ModelCache:
        return ModelCache(tmp_path / "cache", limit_bytes=limit_bytes)

    return open_cache


OpenCache = Callable[..., ModelCache]
MODEL = {"config.json": b"{}", "model.safetensors": b"w" * 300}


def model(letter: bytes) -> Contents:
    return {"model.safetensors": letter * 300}


def test_an_entry_holds_the_files_and_is_fetched_once(open_cache: OpenCache) -> None:
    source = Source(MODEL)
    first = open_cache().directory(facts(MODEL), fetch=source)
    again = open_cache().directory(facts(MODEL), fetch=source)
    assert first == again
    assert {path.name: path.read_bytes() for path in first.iterdir()} == MODEL
    assert source.fetched == list(MODEL)


def test_threads_and_caches_at_once_fetch_once(open_cache: OpenCache) -> None:
    source = Source(MODEL)
    with ThreadPoolExecutor(8) as threads:
        found = list(
            threads.map(lambda _: open_cache().directory(facts(MODEL), fetch=source), range(8))
        )
    assert len(set(found)) == 1
    assert sorted(source.fetched) == sorted(MODEL)


def test_other_contents_than_planned_are_refused_by_name_and_leave_no_entry(
    open_cache: OpenCache, tmp_path: Path
) -> None:
    changed = Source(MODEL | {"model.safetensors": b"v" * 300})
    with pytest.raises(ModelFilesError, match=r"model\.safetensors is not the file that the job"):
        open_cache().directory(facts(MODEL), fetch=changed)
    assert not list((tmp_path / "cache").glob("model-*"))
    assert open_cache().directory(facts(MODEL), fetch=Source(MODEL)).is_dir()


def test_what_a_dead_process_left_half_fetched_is_removed(
    open_cache: OpenCache, tmp_path: Path
) -> None:
    left = tmp_path / "cache" / "fetching-0123"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"w" * 100)
    open_cache().directory(facts(MODEL), fetch=Source(MODEL))
    assert not left.exists()


def test_a_fetch_that_fails_leaves_no_entry(open_cache: OpenCache, tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        open_cache().directory(facts(MODEL), fetch=Source({"config.json": b"{}"}))
    assert not list((tmp_path / "cache").glob("model-*"))


# Another process that uses an entry until its input ends.
USER = """
import sys
from pathlib import Path
from tests.workers.test_model_cache import Source, facts, model
from workers.model_cache import ModelCache
contents = model(sys.argv[2].encode())
cache = ModelCache(Path(sys.argv[1]), limit_bytes=1000)
print(cache.directory(facts(contents), fetch=Source(contents)), flush=True)
sys.stdin.read()
"""


def use_elsewhere(folder: Path, letter: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", USER, str(folder), letter],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert Path(process.stdout.readline().strip()).is_dir()
    return process


def test_room_is_made_by_the_longest_unused_and_never_by_what_is_in_use(
    open_cache: OpenCache, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    user = use_elsewhere(folder, "a")
    use_elsewhere(folder, "b").communicate()
    use_elsewhere(folder, "c").communicate()
    cache, fourth = open_cache(), model(b"d")
    cache.directory(facts(fourth), fetch=Source(fourth))
    held = {path.read_bytes()[:1] for path in folder.glob("model-*/*")}
    assert held == {b"a", b"c", b"d"}
    big = {"model.safetensors": b"e" * 600}
    with pytest.raises(ModelFilesError, match=r"has no room: .* raise it"):
        cache.directory(facts(big), fetch=Source(big))
    user.communicate()


def test_a_model_larger_than_the_cache_is_refused_before_it_is_fetched(
    open_cache: OpenCache,
) -> None:
    source = Source(MODEL)
    with pytest.raises(ModelFilesError, match=r"storage\.cache_gib allows"):
        open_cache(limit_bytes=100).directory(facts(MODEL), fetch=source)
    assert source.fetched == []


def test_files_without_known_hashes_become_an_entry_that_others_link_to(
    open_cache: OpenCache,
) -> None:
    adopted = open_cache().adopt(sorted(MODEL), num_bytes=302, fetch=Source(MODEL))
    assert adopted == facts(MODEL)
    part, nothing = facts(MODEL)[1:], Source({})
    entry = open_cache(limit_bytes=302).directory(part, fetch=nothing)
    assert [path.name for path in entry.iterdir()] == ["model.safetensors"]
    assert nothing.fetched == []


def test_notes_are_found_by_their_whole_subject(open_cache: OpenCache) -> None:
    cache = open_cache()
    assert cache.note("hash", Path("/a"), 1) is None
    cache.take_note("hash", Path("/a"), 1, text="x")
    assert (cache.note("hash", Path("/a"), 1), cache.note("hash", Path("/a"), 2)) == ("x", None)
