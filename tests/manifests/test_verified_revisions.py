"""Verification of jobs with revisions: what was decoded again, what was copied, what counts."""

from collections.abc import Callable
from typing import Any

import pytest

from manifests.documents import encode
from manifests.keys import commit_key, data_key, revision_key, seal_key
from manifests.open_revision import OpenRevision
from manifests.protocol import read_seals
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob
from tests.manifests.revising import commit_revised, decision, revise, revised_values
from tests.manifests.test_verification import flip

MINE = "a" * 16
DATA = data_key(0, MINE)
FIRST = data_key(0, "0" * 16)


def problems(job: StoredJob) -> list[tuple[str, str]]:
    """What verification finds, as pairs of key and problem."""
    return [(finding.key, finding.problem) for finding in verify_structure(job.store)]


@pytest.fixture
def revised_job(sealed_job: StoredJob) -> StoredJob:
    """A complete job whose shard 0 has had row 1 decoded again."""
    opened = revise(sealed_job, {0: (1,)})
    commit_revised(sealed_job, opened, 0, attempt=MINE)
    opened.seal()
    return sealed_job


def test_a_revised_job_has_no_findings(revised_job: StoredJob) -> None:
    assert problems(revised_job) == []


def test_an_open_revision_has_no_findings(sealed_job: StoredJob) -> None:
    opened = revise(sealed_job, {0: None, 1: (0,)})
    assert problems(sealed_job) == []
    commit_revised(sealed_job, opened, 1, attempt=MINE)
    assert problems(sealed_job) == []


def test_a_revision_of_a_revision_may_copy_rows_of_both(revised_job: StoredJob) -> None:
    opened = revise(revised_job, {0: (2,)})
    commit_revised(revised_job, opened, 0, attempt="b" * 16)
    opened.seal()
    assert problems(revised_job) == []


def test_a_superseded_file_may_be_gone_but_not_one_that_counts(revised_job: StoredJob) -> None:
    revised_job.path(FIRST).unlink()
    assert problems(revised_job) == []
    revised_job.path(DATA).unlink()
    assert problems(revised_job) == [(DATA, f"is not in {revised_job.store.uri}")]


def test_a_superseded_file_that_is_there_is_still_checked(revised_job: StoredJob) -> None:
    flip(revised_job.path(FIRST), 50)
    assert problems(revised_job) == [(FIRST, "its SHA-256 is not the recorded one")]


def publish(
    job: StoredJob, opened: OpenRevision, change: Callable[[list[dict[str, Any]]], object]
) -> None:
    """Commit shard 0 as a faulty writer would."""
    values = revised_values(job, opened, 0, attempt=MINE)
    change(values)
    path = job.attempt_file(0, attempt=MINE, values=values, revision=1)
    record = job.record(0, attempt=MINE, path=path, revision=1)
    job.store.put_file_if_absent(DATA, path)
    job.store.put_if_absent(commit_key(0, 1), encode(record))


@pytest.mark.parametrize(
    ("row", "changes", "problem"),
    [
        (2, {"attempt": "0" * 16}, "attempt is '0000000000000000', not 'aaaaaaaaaaaaaaaa'"),
        (0, {"attempt": MINE}, f"attempt is {MINE!r}, and no earlier record of the shard is of"),
        (
            0,
            {"text": "other", "nfe": 5},
            "it was not chosen, but text, nfe differ from the row it was copied from",
        ),
    ],
)
def test_a_row_that_does_not_come_from_where_the_revision_says_is_found(
    sealed_job: StoredJob, row: int, changes: dict[str, Any], problem: str
) -> None:
    opened = revise(sealed_job, {0: (1,)})
    publish(sealed_job, opened, lambda values: values[row].update(changes))
    [(key, found)] = problems(sealed_job)
    assert key == DATA
    assert problem in found


def test_rows_are_checked_as_far_as_possible_where_their_origin_is_gone(
    sealed_job: StoredJob,
) -> None:
    opened = revise(sealed_job, {0: (1,)})
    publish(sealed_job, opened, lambda values: values[0].update(text="other", attempt="c" * 16))
    sealed_job.path(FIRST).write_bytes(b"gone")
    found = dict(problems(sealed_job))
    assert "no earlier record of the shard is of that attempt" in found[DATA]
    sealed_job.path(seal_key(0)).write_bytes(b"gone")
    assert DATA not in dict(problems(sealed_job))


def test_rows_copied_from_a_shard_that_no_seal_names_are_compared_with_nothing(
    sealed_job: StoredJob,
) -> None:
    opened = revise(sealed_job, {0: (1,)})
    publish(sealed_job, opened, lambda values: values[0].update(text="other", attempt="c" * 16))
    (seal,) = read_seals(sealed_job.store)
    without = seal.model_copy(update={"shards": seal.shards[1:]})
    sealed_job.path(seal_key(0)).write_bytes(encode(without))
    sealed_job.path(revision_key(1)).write_bytes(encode(decision(sealed_job, {0: (1,)})))
    found = dict(problems(sealed_job))
    assert "no earlier record of the shard is of that attempt" in found[DATA]
    assert "differ from the row" not in found[DATA]
    assert seal_key(0) in found


def test_a_parent_file_with_other_rows_is_compared_with_nothing(sealed_job: StoredJob) -> None:
    opened = revise(sealed_job, {0: (1,)})
    commit_revised(sealed_job, opened, 0, attempt=MINE)
    short = sealed_job.attempt_file(0, attempt=MINE, values=[])
    sealed_job.path(FIRST).write_bytes(short.read_bytes())
    assert {key for key, _ in problems(sealed_job)} == {FIRST}


def test_a_decision_is_checked(sealed_job: StoredJob) -> None:
    made = decision(sealed_job, {0: None}).model_copy(update={"plan_sha256": "f" * 64})
    sealed_job.store.put_if_absent(revision_key(1), encode(made))
    assert problems(sealed_job) == [(revision_key(1), "it belongs to another plan")]


def test_a_decision_under_another_name_is_found(sealed_job: StoredJob) -> None:
    made = decision(sealed_job, {0: None})
    sealed_job.store.put_if_absent(revision_key(2), encode(made))
    assert problems(sealed_job) == [(revision_key(2), "it is not the decision of revision 1")]


def test_every_flipped_bit_of_a_revision_is_found(revised_job: StoredJob) -> None:
    for key in (revision_key(1), commit_key(0, 1), seal_key(1)):
        path = revised_job.path(key)
        whole = path.read_bytes()
        for offset in range(0, len(whole), 97):
            flip(path, offset)
            assert key in {found for found, _ in problems(revised_job)}
            path.write_bytes(whole)


def test_records_of_a_damaged_decision_are_left_to_it(revised_job: StoredJob) -> None:
    revised_job.path(revision_key(1)).write_bytes(b"{}")
    assert problems(revised_job) == [
        (revision_key(1), "not a JSON document of a job"),
        (seal_key(1), "there is no decision that revision 1 could be"),
    ]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"parent": None}, "parent is None, not 0"),
        ({"revision": 2}, "it is the seal of revision 2"),
        ({"sealed": "2026"}, "sealed is '2026', not '2026-01-01T00:00:01+00:00'"),
    ],
)
def test_the_seal_of_a_revision_has_to_fit_its_parent(
    revised_job: StoredJob, changes: dict[str, Any], problem: str
) -> None:
    seal = read_seals(revised_job.store)[1]
    revised_job.path(seal_key(1)).write_bytes(encode(seal.model_copy(update=changes)))
    assert problems(revised_job) == [(seal_key(1), problem)]


def test_a_shard_that_was_not_chosen_has_to_stay_as_it_was(revised_job: StoredJob) -> None:
    seal = read_seals(revised_job.store)[1]
    other = seal.shards[1].model_copy(update={"sha256": "f" * 64})
    changed = seal.model_copy(update={"shards": (seal.shards[0], other)})
    revised_job.path(seal_key(1)).write_bytes(encode(changed))
    [(key, problem)] = problems(revised_job)
    assert key == seal_key(1)
    assert problem.startswith("shard 1: sha256 is 'ffff")


def test_seals_without_their_shards_never_stop_verification(revised_job: StoredJob) -> None:
    first, second = read_seals(revised_job.store)
    for seal in (first, second):
        changed = encode(seal.model_copy(update={"shards": ()}))
        revised_job.path(seal_key(seal.revision)).write_bytes(changed)
    found = problems(revised_job)
    assert {key for key, _ in found} == {revision_key(1), seal_key(0), seal_key(1)}
    revised_job.path(seal_key(0)).write_bytes(encode(first))
    assert {key for key, _ in problems(revised_job)} == {seal_key(1)}
