"""A process killed at any step of an extension leaves a job that another one brings to its end."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from manifests.protocol import read_seals
from manifests.store import LocalStore, MemoryStore, Store, open_store
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob
from tests.manifests.crash.growth import NUM_DECIDING_STEPS, NUM_STEPS, both, complete, grow
from tests.manifests.crash.killing import Killer, MortalStore, When, killed
from tests.manifests.crash.life import tokens_digest
from tests.manifests.extending import Appended

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

BOTH: tuple[When, ...] = ("before", "after")


@dataclass(frozen=True, kw_only=True)
class Growing:
    """A complete job and what it has to become."""

    job: StoredJob
    ours: Appended
    lost: Appended
    digest: str

    def grow(self, *, store: Store | None = None) -> None:
        """To its end."""
        job = replace(self.job, store=store or self.job.store)
        assert tokens_digest(grow(job, ours=self.ours, lost=self.lost)) == self.digest

    def mortal(self, *, at: int, when: tuple[When, ...] = BOTH) -> None:
        """Until the step at which this process is killed."""
        store = open_store(self.job.store.uri)
        self.grow(store=MortalStore(store, Killer(at=at), when=when))

    def assert_brought_to_its_end(self) -> None:
        """Old rows are untouched, new ones are there, and nothing is left that does not count."""
        store = self.job.store
        assert verify_structure(store) == []
        self.grow()
        assert verify_structure(store) == []
        first, second = read_seals(store)
        assert second.shards[:2] == first.shards
        assert [shard.shard for shard in second.shards] == [0, 1, 2, 3]
        assert len(store.list("data/")) == 4
        assert self.ours.key in store.list("input/")
        assert self.lost.key not in store.list("input/")


def growing(store: Store, scratch: Path) -> Growing:
    """A job that is about to grow."""
    job = complete(store, scratch)
    ours, lost = both(job)
    trial = complete(MemoryStore(), scratch)
    digest = tokens_digest(grow(trial, ours=ours, lost=lost))
    return Growing(job=job, ours=ours, lost=lost, digest=digest)


def test_an_extension_has_nine_steps(tmp_path: Path) -> None:
    job = growing(LocalStore(tmp_path / "job"), tmp_path)
    killer = Killer()
    job.grow(store=MortalStore(job.job.store, killer, when=("before",)))
    kinds = [step.split()[1].partition("/")[0] for step in killer.steps]
    assert len(kinds) == NUM_STEPS
    assert kinds[:NUM_DECIDING_STEPS] == ["input", "input", "revisions"]
    assert kinds[NUM_DECIDING_STEPS:] == ["data", "commits", "data", "commits", "seals", "input"]


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Store]:
    """Makes an empty store of a kind that outlives the process which writes."""
    if request.param == "local":
        return lambda name: LocalStore(tmp_path / name)
    bucket = request.getfixturevalue("s3_bucket")
    return lambda name: open_store(f"s3://{bucket}/{name}")


def test_a_death_before_or_after_any_request_is_made_good(
    new_store: Callable[[str], Store], tmp_path: Path
) -> None:
    """On S3 up to the decision only: what follows is what it is in any revision."""
    is_local = isinstance(new_store("any"), LocalStore)
    for step in range(2 * NUM_STEPS if is_local else 2 * NUM_DECIDING_STEPS):
        job = growing(new_store(f"job-{step}"), tmp_path / f"scratch-{step}")
        assert killed(partial(job.mortal, at=step))
        job.assert_brought_to_its_end()


def test_a_second_death_at_any_step_is_made_good(tmp_path: Path) -> None:
    for first in range(NUM_STEPS):
        for second in range(NUM_STEPS - first - 1):
            name = f"{first}-{second}"
            job = growing(LocalStore(tmp_path / f"job-{name}"), tmp_path / f"scratch-{name}")
            assert killed(partial(job.mortal, at=first, when=("after",)))
            killed(partial(job.mortal, at=second, when=("after",)))
            job.assert_brought_to_its_end()
