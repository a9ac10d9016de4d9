"""What a job has open, how it is committed and sealed, and two who decide at once."""

from typing import Any

import pytest

from manifests.documents import encode
from manifests.errors import DamagedError, ManifestError, MissingError, RevisionError
from manifests.keys import commit_key, data_key, revision_key, seal_key
from manifests.open_revision import (
    OpenRevision,
    create_revision,
    numbered_revision,
    open_revision,
)
from manifests.protocol import read_record, read_seal
from tests.manifests.builders import StoredJob
from tests.manifests.faulty_store import FaultyStore
from tests.manifests.revising import commit_revised, current, decision, revise, revised_file

MINE = "a" * 16
OTHER = "b" * 16


def test_a_job_without_a_seal_has_its_first_run_open(job: StoredJob) -> None:
    opened = current(job)
    assert (opened.number, opened.decision, opened.parent) == (0, None, None)
    assert opened.shards == job.plan.shards
    assert opened.rows(0) is None
    assert opened.job(job.plan.job) is job.plan.job


def test_a_sealed_job_has_nothing_open(sealed_job: StoredJob) -> None:
    assert open_revision(sealed_job.store, sealed_job.plan) is None


def test_a_decision_opens_its_shards_with_its_rows_and_settings(sealed_job: StoredJob) -> None:
    opened = revise(sealed_job, {1: (0,)}, overrides={"decode.max_tokens": 9})
    assert opened == current(sealed_job)
    assert (opened.number, [shard.shard for shard in opened.shards]) == (1, [1])
    assert opened.rows(1) == frozenset({0})
    assert opened.parent == read_seal(sealed_job.store)
    assert opened.job(sealed_job.plan.job).decode.max_tokens == 9


def test_a_revision_is_sealed_beside_what_is_there(sealed_job: StoredJob) -> None:
    before = {key: sealed_job.store.get(key) for key in sealed_job.store.list("")}
    first = read_seal(sealed_job.store)
    opened = revise(sealed_job, {1: (0,)})
    outcome = commit_revised(sealed_job, opened, 1, attempt=MINE)
    seal = opened.seal()
    assert outcome.outcome == "committed"
    assert first is not None
    assert (seal.revision, seal.parent, seal.rows, seal.samples) == (1, 0, 5, 10)
    assert seal.shards[0] == first.shards[0]
    assert (seal.shards[1].record_key, seal.shards[1].data_key) == (
        commit_key(1, 1),
        data_key(1, MINE),
    )
    assert read_seal(sealed_job.store) == seal
    assert open_revision(sealed_job.store, sealed_job.plan) is None
    assert {key: sealed_job.store.get(key) for key in before} == before


def test_the_seal_of_a_revision_is_a_function_of_its_parent_and_records(
    sealed_job: StoredJob,
) -> None:
    opened = revise(sealed_job, {0: None, 1: None})
    for shard in (1, 0):
        commit_revised(sealed_job, opened, shard, attempt=f"{shard + 1:016x}")
    first = encode(opened.seal())
    sealed_job.store.delete(seal_key(1))
    assert encode(current(sealed_job).seal()) == first
    assert encode(opened.seal()) == first


def test_a_revision_can_follow_a_revision(sealed_job: StoredJob) -> None:
    for number in (1, 2):
        opened = revise(sealed_job, {0: (0,)})
        assert opened.number == number
        commit_revised(sealed_job, opened, 0, attempt=f"{number:016x}")
        opened.seal()
    seal = read_seal(sealed_job.store)
    assert seal is not None
    assert (seal.revision, seal.parent, seal.shards[0].record_key) == (2, 1, commit_key(0, 2))


def test_a_revision_with_a_missing_record_cannot_be_sealed(sealed_job: StoredJob) -> None:
    opened = revise(sealed_job, {0: None, 1: None})
    commit_revised(sealed_job, opened, 0, attempt=MINE)
    with pytest.raises(ManifestError, match="shard 1 and 0 more have no commit record"):
        opened.seal()


def test_a_record_of_a_shard_that_was_not_chosen_is_damage(sealed_job: StoredJob) -> None:
    opened = revise(sealed_job, {1: None})
    sealed_job.store.put_if_absent(commit_key(0, 1), b"{}")
    with pytest.raises(DamagedError, match="revision 1 has no such shard"):
        opened.read_records()


def test_a_late_attempt_of_the_revision_before_is_lost(sealed_job: StoredJob) -> None:
    opened = revise(sealed_job, {0: None})
    late = OpenRevision(store=sealed_job.store, plan=sealed_job.plan)
    record, path = revised_file(sealed_job, opened, 0, attempt=OTHER)
    record = record.model_copy(update={"revision": 0})
    assert late.commit(record, data_path=path).outcome == "lost"
    assert opened.read_record(0) is None


def test_a_shard_that_is_not_whole_is_never_committed(job: StoredJob) -> None:
    values = job.output_values(0, attempt=MINE)[:-1]
    path = job.attempt_file(0, attempt=MINE, values=values)
    record = job.record(0, attempt=MINE, path=path)
    with pytest.raises(ManifestError, match="5 outputs and 0 errors are not its 6 samples"):
        current(job).commit(record, data_path=path)
    assert job.store.list("data/") == []


def test_a_record_of_another_revision_is_never_committed(sealed_job: StoredJob) -> None:
    opened = revise(sealed_job, {0: None})
    record, path = revised_file(sealed_job, opened, 0, attempt=MINE)
    with pytest.raises(ManifestError, match="the record is of revision 0, and revision 1 is open"):
        opened.commit(record.model_copy(update={"revision": 0}), data_path=path)


def test_the_same_decision_made_twice_is_one(sealed_job: StoredJob) -> None:
    first = revise(sealed_job, {0: (1,)})
    assert revise(sealed_job, {0: (1,)}, created="later") == first
    assert sealed_job.store.list("revisions/") == [revision_key(1)]


def test_another_decision_at_the_same_moment_is_refused_with_what_was_decided(
    sealed_job: StoredJob,
) -> None:
    mine = decision(sealed_job, {0: (1,)}, reason="finish reason length")
    revise(sealed_job, {0: None}, reason="shards 0")
    with pytest.raises(RevisionError, match=r"opened revision 1 meanwhile \(shards 0\)"):
        create_revision(sealed_job.store, sealed_job.plan, mine)


def test_the_same_decision_after_it_was_carried_out_is_nothing_to_do(sealed_job: StoredJob) -> None:
    made = decision(sealed_job, {0: None})
    opened = revise(sealed_job, {0: None})
    commit_revised(sealed_job, opened, 0, attempt=MINE)
    opened.seal()
    assert create_revision(sealed_job.store, sealed_job.plan, made) is None
    revise(sealed_job, {1: None})
    assert create_revision(sealed_job.store, sealed_job.plan, made) is None


@pytest.mark.parametrize("outcome", ["reply lost", "request lost"])
def test_an_unknown_outcome_of_a_decision_is_settled(sealed_job: StoredJob, outcome: Any) -> None:
    store = FaultyStore(sealed_job.store, script=[outcome])
    opened = create_revision(store, sealed_job.plan, decision(sealed_job, {0: None}))
    assert opened is not None
    assert opened.decision == current(sealed_job).decision


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"revision": 2, "parent": 1}, "it is revision 2"),
        ({"plan_sha256": "f" * 64}, "it belongs to another plan"),
        ({"parent_sha256": "f" * 64}, "it does not go out from the seal of revision 0"),
        ({"shards": ({"shard": 2},)}, "the plan has no shard 2"),
        ({"shards": ({"shard": 1, "rows": (0, 2)},)}, "shard 1 has no row 2"),
        ({"overrides": {"shards.rows": 3}}, "no revision can change shards.rows"),
        ({"overrides": {"decode.nonsense": 3}}, "its overrides cannot be used"),
        ({"overrides": {"decode.a.b": 3}}, "its overrides cannot be used"),
        ({"overrides": {"decode.max_tokens.b": 3}}, "its overrides cannot be used"),
        ({"overrides": {"decode.max_tokens": -3}}, "its overrides cannot be used"),
    ],
)
def test_a_decision_that_does_not_fit_the_job_is_damage(
    sealed_job: StoredJob, changes: dict[str, Any], problem: str
) -> None:
    made = decision(sealed_job, {0: None})
    changed = type(made).model_validate(made.model_dump() | changes)
    sealed_job.store.put_if_absent(revision_key(1), encode(changed))
    with pytest.raises(DamagedError, match=f"^revisions/0001.json: {problem}"):
        current(sealed_job)


def test_a_worker_finds_a_revision_by_its_number_also_when_it_is_over(
    sealed_job: StoredJob,
) -> None:
    opened = revise(sealed_job, {0: None})
    commit_revised(sealed_job, opened, 0, attempt=MINE)
    opened.seal()
    assert numbered_revision(sealed_job.store, sealed_job.plan, 1) == opened
    assert numbered_revision(sealed_job.store, sealed_job.plan, 0).number == 0
    with pytest.raises(MissingError, match=r"revisions/0002.json"):
        numbered_revision(sealed_job.store, sealed_job.plan, 2)


def test_records_of_the_first_run_stay_when_a_revision_commits(sealed_job: StoredJob) -> None:
    first = read_record(sealed_job.store, sealed_job.plan, 0)
    opened = revise(sealed_job, {0: None})
    commit_revised(sealed_job, opened, 0, attempt=MINE)
    assert read_record(sealed_job.store, sealed_job.plan, 0) == first
    again = opened.read_record(0)
    assert again is not None
    assert (again.attempt, again.revision) == (MINE, 1)


def test_a_revision_lists_which_of_its_own_shards_are_committed(sealed_job: StoredJob) -> None:
    opened = revise(sealed_job, {0: (1,), 1: None})
    assert opened.list_committed() == frozenset()
    commit_revised(sealed_job, opened, 1, attempt=MINE)
    assert opened.list_committed() == frozenset({1})
