"""A process killed at any step of a job's life leaves a job that another one brings to its end."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from manifests.store import LocalStore, MemoryStore, Store, open_store
from manifests.verification import verify_structure
from tests.manifests.crash.killing import Killer, MortalStore, When, killed, mortal_system
from tests.manifests.crash.life import LOSER, NUM_STEPS, live, tokens_digest

# Many processes, one after the other: on a busy machine a test takes minutes.
pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108
BOTH: tuple[When, ...] = ("before", "after")
NewStore = Callable[[], Store]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: killing a process loses nothing that a disk has."""
    if not MEMORY_FOLDER.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=MEMORY_FOLDER, prefix="spotbatch-test-") as name:
        yield Path(name)


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def new_store(request: pytest.FixtureRequest, folder: Path) -> NewStore:
    """Makes empty stores of a kind that outlives the process which writes."""
    numbers = count()
    if request.param == "local":
        return lambda: LocalStore(folder / f"job-{next(numbers)}")
    bucket = request.getfixturevalue("s3_bucket")
    return lambda: open_store(f"s3://{bucket}/job-{next(numbers)}")


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What counts at the end of a life without deaths."""
    return tokens_digest(live(MemoryStore(), tmp_path_factory.mktemp("scratch")))


def mortal_life(uri: str, scratch: Path, *, at: int, when: tuple[When, ...] = BOTH) -> None:
    """Live in this process, which opens the store itself, until the step at which it is killed."""
    live(MortalStore(open_store(uri), Killer(at=at), when=when), scratch)


def assert_brought_to_its_end(store: Store, scratch: Path, *, digest: str) -> None:
    """A life without deaths does the rest: nothing is lost, doubled or left behind."""
    assert verify_structure(store) == []
    job = live(store, scratch)
    assert verify_structure(store) == []
    assert tokens_digest(job) == digest
    assert LOSER not in store.list("data/")
    assert len(store.list("data/")) == 3  # two of the first run, one of the revision
    assert store.list("seals/") == ["seals/0000.json", "seals/0001.json"]


def test_a_life_has_twelve_steps(folder: Path) -> None:
    killer = Killer()
    live(MortalStore(MemoryStore(), killer, when=("before",)), folder)
    kinds = [step.split()[1].partition("/")[0] for step in killer.steps]
    assert len(kinds) == NUM_STEPS
    assert kinds[:6] == ["plan.json", "data", "commits", "data", "commits", "seals"]
    assert kinds[6:] == ["data", "revisions", "data", "commits", "seals", "data"]


@pytest.mark.parametrize("step", range(2 * NUM_STEPS))
def test_a_death_before_or_after_any_request_is_made_good(
    new_store: NewStore, folder: Path, digest: str, step: int
) -> None:
    store, scratch = new_store(), folder / "scratch"
    assert killed(partial(mortal_life, store.uri, scratch, at=step))
    if step == 0:  # before there was a plan, there was no job
        assert store.list("plan.json") == []
        live(store, scratch)
    assert_brought_to_its_end(store, scratch, digest=digest)


@pytest.mark.parametrize("first", range(NUM_STEPS))
def test_a_second_death_at_any_step_is_made_good(folder: Path, digest: str, first: int) -> None:
    for second in range(NUM_STEPS):
        store, scratch = LocalStore(folder / f"job-{second}"), folder / "scratch"
        life = partial(mortal_life, store.uri, scratch, when=("after",))
        assert killed(partial(life, at=first))
        is_killed_again = killed(partial(life, at=second))
        # Of a life that was begun near its end the second death may not find enough steps.
        assert is_killed_again or first + second >= NUM_STEPS - 2
        assert_brought_to_its_end(store, scratch, digest=digest)


def mortal_calls(uri: str, scratch: Path, *, at: int) -> None:
    """Live until one call of the local store to the system."""
    with mortal_system(Killer(at=at)):
        live(open_store(uri), scratch)


def test_a_death_at_any_call_to_the_system_is_made_good(folder: Path, digest: str) -> None:
    killer = Killer()
    with mortal_system(killer):
        live(LocalStore(folder / "trial"), folder / "scratch")
    kinds = Counter(step.split()[0] for step in killer.steps)
    assert set(kinds) == {"open", "write", "fsync", "link", "unlink"}
    for step in range(len(killer.steps)):
        store = LocalStore(folder / f"job-{step}")
        assert killed(partial(mortal_calls, store.uri, folder / "scratch", at=step))
        if store.list("plan.json"):
            assert_brought_to_its_end(store, folder / "scratch", digest=digest)
