"""Random lives of a job against a dictionary: claims, crashes, commits, revisions, gc and seals."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from manifests.errors import FingerprintError, RevisionError, UnknownOutcomeError
from manifests.garbage import delete_all, find_garbage
from manifests.keys import data_key
from manifests.open_revision import (
    OpenRevision,
    create_revision,
    latest_plan,
    open_revision,
)
from manifests.plan import write_plan
from manifests.protocol import read_records, read_seals
from manifests.records import CommitRecord
from manifests.store import MemoryStore
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob, make_job
from tests.manifests.extending import appended
from tests.manifests.faulty_store import FaultyStore, Outcome
from tests.manifests.revising import Rows, decision, revised_file

SHARDS = st.sampled_from((0, 1, 2, 3))
ROWS: list[Rows] = [
    {0: None},
    {0: (1,)},
    {1: (0, 1)},
    {0: (0,), 1: None},
]
REPLIES = st.lists(st.sampled_from(("fine", "reply lost", "request lost")), max_size=4)


@dataclass(kw_only=True)
class Claim:
    """An attempt that was begun; it may go on at any time, or never."""

    revision: OpenRevision
    record: CommitRecord
    path: Path


class Life(RuleBasedStateMachine):
    """The dictionaries say what storage has to say."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="spotbatch-life-")
        self.claims: list[Claim] = []
        self.records: dict[tuple[int, int], str] = {}  # (revision, shard): attempt
        self.chosen: list[set[int]] = [{0, 1}]  # shards by revision
        self.sealed: list[dict[int, str]] = []  # attempts by shard, by revision
        self.asked: Rows = {}
        self.num_attempts = 0

    @initialize()
    def plan(self) -> None:
        self.job: StoredJob = make_job(Path(self._folder.name), store=MemoryStore())

    @property
    def is_open(self) -> bool:
        """Whether a run would have something to do."""
        return len(self.chosen) > len(self.sealed)

    @rule()
    def plan_again(self) -> None:
        created = self.job.plan.as_created
        assert write_plan(self.job.store, created) == created

    @rule()
    def plan_something_else(self) -> None:
        created = self.job.plan.as_created
        other = created.job.model_copy(
            update={"sampling": created.job.sampling.model_copy(update={"n": 3})}
        )
        plan = created.model_copy(update={"job": other})
        with pytest.raises(FingerprintError, match=r"sampling\.n was 2, is 3"):
            write_plan(self.job.store, plan)

    @precondition(lambda self: self.is_open)
    @rule(shard=SHARDS)
    def claim(self, shard: int) -> None:
        revision = open_revision(self.job.store, self.job.plan)
        assert revision is not None
        if shard in {each.shard for each in revision.shards}:
            self.num_attempts += 1
            attempt = f"{self.num_attempts:016x}"
            record, path = revised_file(self.job, revision, shard, attempt=attempt)
            self.claims.append(Claim(revision=revision, record=record, path=path))

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), dies=st.sampled_from(("before the record", "never")), replies=REPLIES)
    def go_on(self, data: st.DataObject, dies: str, replies: list[Outcome]) -> None:
        """An attempt puts its data, and unless it dies its record, over a line that may fail."""
        claim = self.claims.pop(data.draw(st.integers(0, len(self.claims) - 1)))
        if dies == "before the record":
            self.job.store.put_file_if_absent(claim.record.data_key, claim.path)
            return
        store = FaultyStore(self.job.store, script=replies)
        line = OpenRevision(
            store=store,
            plan=claim.revision.plan,
            decision=claim.revision.decision,
            parent=claim.revision.parent,
        )
        place = (claim.record.revision, claim.record.shard)
        try:
            outcome = line.commit(claim.record, data_path=claim.path)
        except UnknownOutcomeError:
            self._resolve(claim)
            return
        counting = self.records.setdefault(place, claim.record.attempt)
        assert outcome.record.attempt == counting
        assert (outcome.outcome == "committed") == (counting == claim.record.attempt)

    def _resolve(self, claim: Claim) -> None:
        """Only reading tells what a request has done whose outcome stays unknown."""
        record = claim.revision.read_record(claim.record.shard)
        if record is not None:
            self.records.setdefault((record.revision, record.shard), record.attempt)

    @rule()
    def resume(self) -> None:
        """A driver that starts anew hands out what has no record."""
        revision = open_revision(self.job.store, self.job.plan)
        assert (revision is not None) == self.is_open
        if revision is not None:
            number = len(self.sealed)
            expected = {s: a for (r, s), a in self.records.items() if r == number}
            found = {s: record.attempt for s, record in revision.read_records().items()}
            assert (revision.number, found) == (number, expected)
            assert {shard.shard for shard in revision.shards} == self.chosen[number]

    @precondition(lambda self: self.is_open)
    @rule()
    def seal(self) -> None:
        number = len(self.sealed)
        if all((number, shard) in self.records for shard in self.chosen[number]):
            revision = open_revision(self.job.store, self.job.plan)
            assert revision is not None
            revision.seal()
            before = self.sealed[-1] if self.sealed else {}
            now = {shard: self.records[number, shard] for shard in self.chosen[number]}
            self.sealed.append(before | now)

    @precondition(lambda self: self.sealed)
    @rule(rows=st.sampled_from(ROWS))
    def retry(self, rows: Rows) -> None:
        asked = decision(self.job, rows)
        if not self.is_open:
            create_revision(self.job.store, self.job.plan, asked)
            self.chosen.append(set(rows))
            self.asked = rows
        elif rows == self.asked:
            opened = create_revision(self.job.store, self.job.plan, asked)
            assert opened is not None
            assert opened.number == len(self.sealed)
        else:
            with pytest.raises(RevisionError, match=f"opened revision {len(self.sealed)} mean"):
                create_revision(self.job.store, self.job.plan, asked)

    @precondition(lambda self: self.sealed and not self.is_open)
    @rule(dies=st.sampled_from(("before the decision", "never")))
    def extend(self, dies: str) -> None:
        """One more shard of one row; whoever comes later finds the decision, or makes it."""
        made = appended(self.job, (1,), mark=f"at-{len(self.sealed)}")
        made.publish(self.job)
        if dies == "never":
            create_revision(self.job.store, self.job.plan, made.decision)
            self.chosen.append({len(self.job.plan.shards)})
            self.asked = {}
            self.job = made.grown(self.job)

    @rule()
    def look_at_the_plan(self) -> None:
        assert latest_plan(self.job.store, self.job.plan) == self.job.plan

    @rule(superseded=st.booleans())
    def gc(self, superseded: bool) -> None:
        garbage = find_garbage(self.job.store, self.job.plan, superseded=superseded)
        if not self.sealed:
            assert garbage == []
        delete_all(self.job.store, garbage)
        assert verify_structure(self.job.store) == []

    @invariant()
    def what_counts_is_there(self) -> None:
        seals = read_seals(self.job.store)
        found = [{s.shard: s.data_key for s in seal.shards} for seal in seals]
        expected = [{s: data_key(s, a) for s, a in sorted(of.items())} for of in self.sealed]
        assert found == expected
        present = set(self.job.store.list("data/"))
        assert present >= set(found[-1].values() if found else ())
        if self.is_open:
            number = len(self.sealed)
            records = read_records(
                self.job.store, self.job.plan, revision=number, shards=self.chosen[number]
            )
            assert {record.data_key for record in records.values()} <= present

    def teardown(self) -> None:
        assert verify_structure(self.job.store) == []
        self._folder.cleanup()


def test_random_lives_agree_with_a_dictionary() -> None:
    run_state_machine_as_test(Life, settings=settings(max_examples=20, stateful_step_count=30))
