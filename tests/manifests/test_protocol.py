"""The commit protocol: every outcome of every write, and seals that any driver writes alike."""

import os
from collections.abc import Sequence

import pytest

from manifests.documents import encode
from manifests.errors import DamagedError, ManifestError, MissingError, UnknownOutcomeError
from manifests.keys import commit_key, data_key, seal_key
from manifests.plan import plan_hash
from manifests.protocol import (
    CommitOutcome,
    build_seal,
    commit_shard,
    read_record,
    read_records,
    read_seal,
    read_seals,
    seal_job,
)
from tests.manifests.builders import CREATED, StoredJob, make_job
from tests.manifests.faulty_store import FaultyStore, Outcome

MINE = "a" * 16
OTHER = "b" * 16
DATA = data_key(0, MINE)
RECORD = commit_key(0)


def commit(
    job: StoredJob, *, script: Sequence[Outcome] = (), rival_before: str | None = None
) -> tuple[CommitOutcome, FaultyStore]:
    """Commit shard 0 as attempt MINE; a rival may commit just before one of the calls."""
    store = FaultyStore(job.store, script=script)
    if rival_before is not None:
        store.before[rival_before] = lambda: job.commit(0, attempt=OTHER)
    path = job.attempt_file(0, attempt=MINE)
    record = job.record(0, attempt=MINE, path=path)
    return commit_shard(store, record=record, data_path=path), store


def assert_committed_by(job: StoredJob, attempt: str) -> None:
    """The record of shard 0 is this attempt's, and its data file is there whole."""
    record = read_record(job.store, job.plan, 0)
    assert record is not None
    assert record.attempt == attempt
    assert len(job.store.get(record.data_key)) == record.bytes


def test_the_data_is_there_before_the_record(job: StoredJob) -> None:
    outcome, store = commit(job)
    assert outcome.outcome == "committed"
    assert store.calls == [f"put {DATA}", f"put {RECORD}"]
    assert_committed_by(job, MINE)


def test_a_shard_that_has_a_record_is_lost_and_my_data_goes(job: StoredJob) -> None:
    job.commit(0, attempt=OTHER)
    outcome, store = commit(job)
    assert (outcome.outcome, outcome.record.attempt) == ("lost", OTHER)
    assert store.calls[-1] == f"delete {DATA}"
    assert job.store.list("data/") == [data_key(0, OTHER)]
    assert_committed_by(job, OTHER)


def test_data_that_cannot_be_removed_does_not_change_the_outcome(
    job: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.commit(0, attempt=OTHER)

    def refuse(path: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    assert commit(job)[0].outcome == "lost"


SCRIPTS: list[list[Outcome]] = [
    ["reply lost"],
    ["request lost"],
    ["request lost", "request lost"],
    ["request lost", "reply lost"],
    ["fine", "reply lost"],
    ["fine", "request lost"],
    ["fine", "request lost", "request lost"],
    ["fine", "request lost", "reply lost"],
    ["reply lost", "reply lost"],
]


@pytest.mark.parametrize("script", SCRIPTS, ids=", ".join)
def test_unknown_outcomes_end_in_my_commit(job: StoredJob, script: list[Outcome]) -> None:
    outcome, store = commit(job, script=script)
    assert (outcome.outcome, outcome.record.attempt) == ("committed", MINE)
    assert not any(call.startswith("delete") for call in store.calls)
    assert_committed_by(job, MINE)


def test_my_own_record_after_a_lost_reply_is_found_by_reading(job: StoredJob) -> None:
    outcome, store = commit(job, script=["fine", "reply lost"])
    assert outcome.outcome == "committed"
    assert store.calls == [f"put {DATA}", f"put {RECORD}", f"put {RECORD}", f"get {RECORD}"]


def test_a_rival_that_came_first_wins_also_when_my_request_got_lost(job: StoredJob) -> None:
    outcome, _ = commit(job, script=["fine", "request lost"], rival_before=f"put {RECORD}")
    assert (outcome.outcome, outcome.record.attempt) == ("lost", OTHER)
    assert_committed_by(job, OTHER)


def test_the_same_attempt_may_try_again_with_a_new_record(job: StoredJob) -> None:
    first, _ = commit(job)
    path = job.attempt_file(0, attempt=MINE)
    later = first.record.model_copy(update={"committed": "2027-01-01T00:00:00+00:00"})
    again = commit_shard(job.store, record=later, data_path=path)
    assert again == CommitOutcome("committed", first.record)
    assert_committed_by(job, MINE)


@pytest.mark.parametrize("num_fine", [0, 1])
def test_an_outcome_that_stays_unknown_is_raised_and_nothing_is_deleted(
    job: StoredJob, num_fine: int
) -> None:
    fine: Outcome = "fine"
    request_lost: Outcome = "request lost"
    script = [fine] * num_fine + [request_lost] * 10
    store = FaultyStore(job.store, script=script)
    path = job.attempt_file(0, attempt=MINE)
    record = job.record(0, attempt=MINE, path=path)
    with pytest.raises(UnknownOutcomeError):
        commit_shard(store, record=record, data_path=path)
    assert [call.split()[0] for call in store.calls] == ["put"] * (num_fine + 3)


def test_a_file_that_changed_since_it_was_hashed_is_not_published(job: StoredJob) -> None:
    path = job.attempt_file(0, attempt=MINE)
    record = job.record(0, attempt=MINE, path=path)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(DamagedError, match=f"{DATA}: the local file changed"):
        commit_shard(job.store, record=record, data_path=path)
    assert job.store.list("data/") + job.store.list("commits/") == []


def test_foreign_bytes_under_my_own_data_key_are_damage(job: StoredJob) -> None:
    job.store.put_if_absent(DATA, b"foreign")
    with pytest.raises(DamagedError, match=f"{DATA}: it is there with other bytes"):
        commit(job)
    assert job.store.list("commits/") == []


def test_a_damaged_record_is_never_taken_for_an_absent_one(job: StoredJob) -> None:
    job.store.put_if_absent(RECORD, b"{}")
    with pytest.raises(DamagedError, match=f"^{RECORD}: "):
        commit(job)
    assert job.store.get(RECORD) == b"{}"


def test_a_shard_without_a_record_reads_as_none(job: StoredJob) -> None:
    assert read_record(job.store, job.plan, 0) is None
    assert read_records(job.store, job.plan) == {}


def test_records_read_by_shard_in_shard_order(job: StoredJob) -> None:
    for shard in (1, 0):
        job.commit(shard)
    records = read_records(job.store, job.plan)
    assert [(shard, record.shard) for shard, record in records.items()] == [(0, 0), (1, 1)]


def test_a_record_of_another_plan_is_damage(job: StoredJob) -> None:
    path = job.attempt_file(0, attempt=MINE)
    record = job.record(0, attempt=MINE, path=path, plan_sha256="f" * 64)
    job.publish(0, path, attempt=MINE, record=record)
    with pytest.raises(DamagedError, match=f"{RECORD}: it belongs to another plan"):
        read_record(job.store, job.plan, 0)


@pytest.mark.parametrize(("shard", "revision"), [(1, 0), (0, 1)])
def test_a_record_under_another_name_is_damage(job: StoredJob, shard: int, revision: int) -> None:
    path = job.attempt_file(shard, attempt=MINE)
    record = job.record(shard, attempt=MINE, path=path, revision=revision)
    job.store.put_if_absent(RECORD, encode(record))
    with pytest.raises(DamagedError, match=f"{RECORD}: it is the record of shard {shard}"):
        read_record(job.store, job.plan, 0)


def test_a_record_of_a_shard_that_is_not_planned_is_damage(job: StoredJob) -> None:
    job.store.put_if_absent(commit_key(2), b"")
    with pytest.raises(DamagedError, match=f"{commit_key(2)}: revision 0 has no such shard"):
        read_records(job.store, job.plan)


def test_a_record_that_vanishes_while_it_is_read_is_damage(job: StoredJob) -> None:
    job.commit(0)
    store = FaultyStore(job.store, script=[])
    store.before[f"get {RECORD}"] = lambda: job.store.delete(RECORD)
    with pytest.raises(DamagedError, match=f"{RECORD}: it was listed, but cannot be read"):
        read_records(store, job.plan)


def test_a_seal_names_the_record_of_every_shard_and_sums_them(sealed_job: StoredJob) -> None:
    seal = read_seal(sealed_job.store)
    assert seal is not None
    assert [(s.shard, s.record_key) for s in seal.shards] == [(0, RECORD), (1, commit_key(1))]
    assert (seal.rows, seal.samples, seal.ok, seal.errors) == (5, 10, 8, 2)
    assert (seal.parent, seal.plan_sha256) == (None, plan_hash(sealed_job.plan))
    assert seal.sealed == "2026-01-01T00:00:01+00:00"


def test_a_seal_is_a_function_of_plan_and_records(sealed_job: StoredJob) -> None:
    first = sealed_job.store.get(seal_key())
    sealed_job.store.delete(seal_key())
    seal_job(sealed_job.store, sealed_job.plan)
    assert sealed_job.store.get(seal_key()) == first
    records = read_records(sealed_job.store, sealed_job.plan)
    backwards = list(reversed(records.values()))
    assert encode(build_seal(sealed_job.plan, records=backwards)) == first


def test_sealing_again_finds_the_equal_seal(sealed_job: StoredJob) -> None:
    assert seal_job(sealed_job.store, sealed_job.plan) == read_seal(sealed_job.store)


@pytest.mark.parametrize("outcome", ["reply lost", "request lost"])
def test_an_unknown_outcome_of_the_seal_is_settled(job: StoredJob, outcome: Outcome) -> None:
    for shard in (0, 1):
        job.commit(shard)
    seal = seal_job(FaultyStore(job.store, script=[outcome]), job.plan)
    assert read_seal(job.store) == seal


def test_a_seal_that_does_not_fit_the_records_stops_the_job(sealed_job: StoredJob) -> None:
    seal = read_seal(sealed_job.store)
    assert seal is not None
    sealed_job.path(seal_key()).write_bytes(encode(seal.model_copy(update={"ok": 7})))
    with pytest.raises(DamagedError, match=r"seals/0000.json: it does not fit"):
        seal_job(sealed_job.store, sealed_job.plan)


def test_a_job_with_missing_records_cannot_be_sealed(job: StoredJob) -> None:
    job.commit(1)
    with pytest.raises(ManifestError, match="shard 0 and 0 more have no commit record"):
        seal_job(job.store, job.plan)
    assert read_seal(job.store) is None


def test_a_job_without_rows_is_sealed_at_its_creation(job: StoredJob) -> None:
    empty = job.plan.model_copy(update={"shards": (), "rows": 0})
    assert seal_job(job.store, empty).sealed == CREATED


def test_readers_take_the_highest_seal(sealed_job: StoredJob) -> None:
    first = read_seal(sealed_job.store)
    assert first is not None
    second = first.model_copy(update={"revision": 1, "parent": 0})
    sealed_job.store.put_if_absent(seal_key(1), encode(second))
    assert read_seal(sealed_job.store) == second


def test_losing_leaves_the_data_of_the_winner_in_any_order(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    for call in (f"put {DATA}", f"put {RECORD}"):
        job = make_job(tmp_path_factory.mktemp("job"))
        outcome, _ = commit(job, rival_before=call)
        assert outcome.outcome == "lost"
        assert_committed_by(job, OTHER)
        with pytest.raises(MissingError):
            job.store.get(DATA)


def test_a_seal_under_another_number_is_damage(sealed_job: StoredJob) -> None:
    sealed_job.path(seal_key()).rename(sealed_job.path(seal_key(1)))
    with pytest.raises(DamagedError, match=r"seals/0001.json: it is the seal of revision 0"):
        read_seal(sealed_job.store)
    with pytest.raises(DamagedError, match=r"seals/0001.json: it is not the seal of revision 0"):
        read_seals(sealed_job.store)
