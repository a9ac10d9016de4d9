"""Appended rows: what an extension has to fit, and what the job is with it."""

from typing import Any

import pytest
from pydantic import ValidationError

from manifests.documents import encode
from manifests.errors import DamagedError, MissingError, RevisionError
from manifests.extension import ExtendedPlan, place_in_grid
from manifests.garbage import delete_all, find_garbage
from manifests.keys import commit_key, data_key, revision_key, seal_key, staged_key
from manifests.open_revision import (
    create_revision,
    latest_plan,
    numbered_revision,
    open_revision,
    plan_at,
)
from manifests.plan import plan_hash, sample_key, shard_seed
from manifests.protocol import read_seals
from manifests.revision import Revision
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob
from tests.manifests.extending import GROWN_INPUT, GROWN_SHA, appended, extend
from tests.manifests.revising import commit_revised, current, decision, revise

MINE = "a" * 16


def problems(job: StoredJob) -> list[tuple[str, str]]:
    """What verification finds, as pairs of key and problem."""
    return [(finding.key, finding.problem) for finding in verify_structure(job.store)]


def finish(job: StoredJob) -> None:
    """Commit and seal what the job has open."""
    opened = current(job)
    for shard in opened.shards:
        attempt = f"{opened.number:08x}{shard.shard:08x}"
        commit_revised(job, opened, shard.shard, attempt=attempt)
    opened.seal()


def test_an_extended_plan_is_the_plan_with_more_rows(sealed_job: StoredJob) -> None:
    grown, opened = extend(sealed_job)
    plan = latest_plan(sealed_job.store, sealed_job.plan)
    assert plan == grown.plan == opened.plan
    assert isinstance(plan, ExtendedPlan)
    assert (plan.rows, len(plan.shards), plan.rows_sha256) == (8, 4, GROWN_SHA)
    assert (plan.input, plan.extended_in) == (GROWN_INPUT, (1,))
    assert [shard.shard for shard in opened.shards] == [2, 3]
    assert opened.decision is not None
    assert opened.decision.extension is not None
    assert opened.decision.extension.num_rows == sum(shard.rows for shard in opened.shards)
    assert plan.shards[:2] == sealed_job.plan.shards


def test_it_keeps_the_hash_of_the_stored_plan_and_has_a_fingerprint_of_its_own(
    sealed_job: StoredJob,
) -> None:
    grown, _ = extend(sealed_job)
    assert plan_hash(grown.plan) == plan_hash(sealed_job.plan)
    assert grown.plan.as_created == sealed_job.plan
    assert grown.plan.fingerprint != sealed_job.plan.fingerprint


def test_the_plan_of_any_revision_can_be_had(sealed_job: StoredJob) -> None:
    grown, _ = extend(sealed_job)
    finish(grown)
    revise(grown, {3: None})
    finish(grown)
    again, _ = extend(grown, (1,), mark="newer")
    store = sealed_job.store
    assert [plan_at(store, again.plan, r).rows for r in range(4)] == [5, 8, 8, 9]
    assert [numbered_revision(store, again.plan, r).plan.rows for r in range(4)] == [5, 8, 8, 9]
    assert again.plan.extended_in == (1, 3)
    with pytest.raises(MissingError, match=r"revisions/0004\.json is not in"):
        plan_at(store, again.plan, 4)


def test_appended_rows_have_the_noise_of_a_plan_over_all_rows(sealed_job: StoredJob) -> None:
    """Rows 5 to 7 are in the stretch of 64 rows that begins with row 0."""
    grown, _ = extend(sealed_job)
    plan = grown.plan
    seed = shard_seed(plan.job.seed.value, 0)
    assert [(s.seed, s.num_before) for s in plan.shards[2:]] == [(seed, 5), (seed, 7)]
    whole = plan.shards[0].model_copy(update={"rows": 8})
    for shard, index, row in ((2, 0, 5), (2, 1, 6), (3, 0, 7)):
        staged = grown.rows[shard][index]
        key = sample_key(plan, plan.shards[shard], index, staged, 1)
        assert key == sample_key(plan, whole, row, staged, 1)
    assert place_in_grid(plan, 130) == (shard_seed(plan.job.seed.value, 2), 2)


def test_the_seal_of_an_extension_has_old_and_new_shards(sealed_job: StoredJob) -> None:
    grown, _ = extend(sealed_job)
    finish(grown)
    first, second = read_seals(grown.store)
    assert second.shards[:2] == first.shards
    assert [s.record_key for s in second.shards[2:]] == [commit_key(2, 1), commit_key(3, 1)]
    assert (second.rows, second.samples, second.ok) == (8, 16, first.ok + 6)
    assert open_revision(grown.store, grown.plan) is None
    assert problems(grown) == []


def test_an_open_extension_has_no_findings(sealed_job: StoredJob) -> None:
    grown, opened = extend(sealed_job)
    assert problems(grown) == []
    commit_revised(grown, opened, 3, attempt=MINE)
    assert problems(grown) == []


def test_a_decision_is_made_once(sealed_job: StoredJob) -> None:
    first, second = appended(sealed_job), appended(sealed_job, (1,), mark="other")
    first.publish(sealed_job)
    second.publish(sealed_job)
    opened = create_revision(sealed_job.store, sealed_job.plan, first.decision)
    again = first.decision.model_copy(update={"created": "2026-02-02T00:00:00+00:00"})
    assert create_revision(sealed_job.store, sealed_job.plan, again) == opened
    for other in (second.decision, decision(sealed_job, {0: None})):
        with pytest.raises(RevisionError, match=r"opened revision 1 meanwhile \(3 rows appended\)"):
            create_revision(sealed_job.store, sealed_job.plan, other)


def test_staged_files_of_a_decision_that_was_not_made_are_garbage(sealed_job: StoredJob) -> None:
    kept, lost = appended(sealed_job), appended(sealed_job, (1,), mark="lost")
    kept.publish(sealed_job)
    lost.publish(sealed_job)
    assert find_garbage(sealed_job.store, sealed_job.plan) == []  # either may be decided on
    create_revision(sealed_job.store, sealed_job.plan, kept.decision)
    assert find_garbage(sealed_job.store, sealed_job.plan) == [lost.key]
    delete_all(sealed_job.store, [lost.key])
    assert problems(sealed_job) == []


def test_a_staged_file_for_a_later_decision_is_left_alone(sealed_job: StoredJob) -> None:
    grown, _ = extend(sealed_job)
    key = staged_key(2, 0, sha256="d" * 64)
    grown.store.put_if_absent(key, b"")
    assert find_garbage(grown.store, grown.plan) == []
    finish(grown)
    assert find_garbage(grown.store, grown.plan) == []
    revise(grown, {0: None})
    assert find_garbage(grown.store, grown.plan) == [key]


def test_files_of_appended_shards_are_garbage_only_when_they_are_sealed(
    sealed_job: StoredJob,
) -> None:
    grown, _ = extend(sealed_job)
    loser = data_key(3, "f" * 16)
    grown.store.put_file_if_absent(loser, grown.attempt_file(3, attempt="f" * 16))
    assert find_garbage(grown.store, sealed_job.plan) == []
    finish(grown)
    assert find_garbage(grown.store, sealed_job.plan) == [loser]


@pytest.mark.parametrize(
    ("shard", "changes", "problem"),
    [
        (0, {"seed": 3}, "shard 2 has not the seed of its place"),
        (1, {"before": 1}, "shard 3 has not the seed of its place"),
        (1, {"shard": 5}, "shard 3 of the shard table does not follow"),
        (1, {"rows": 2}, "the shard table has 9 rows, the plan 8"),
        (0, {"part": "input/part-00000001.parquet"}, "is not among the staged files"),
    ],
)
def test_shards_that_do_not_follow_the_plan_are_damage(
    sealed_job: StoredJob, shard: int, changes: dict[str, Any], problem: str
) -> None:
    made = appended(sealed_job)
    extension = made.decision.extension
    assert extension is not None
    shards = list(extension.shards)
    shards[shard] = shards[shard].model_copy(update=changes)
    store(sealed_job, made.decision, shards=tuple(shards))
    with pytest.raises(DamagedError, match=rf"revisions/0001\.json: .*{problem}"):
        latest_plan(sealed_job.store, sealed_job.plan)
    with pytest.raises(DamagedError, match=problem):
        open_revision(sealed_job.store, sealed_job.plan)
    assert [key for key, found in problems(sealed_job) if problem in found] == [revision_key(1)]


def store(job: StoredJob, made: Revision, **changes: Any) -> None:
    """A decision as a faulty writer would leave it."""
    assert made.extension is not None
    extension = made.extension.model_copy(update=changes)
    fields = made.model_dump(exclude={"extension", "shards"})
    chosen = tuple({"shard": shard.shard} for shard in extension.shards)
    revision = Revision(**fields, extension=extension, shards=chosen)
    job.store.put_if_absent(revision_key(1), encode(revision))


def test_a_staged_file_of_the_plan_cannot_be_staged_again(sealed_job: StoredJob) -> None:
    made = appended(sealed_job)
    assert made.decision.extension is not None
    staged = (*made.decision.extension.staged, sealed_job.plan.staged[0])
    store(sealed_job, made.decision, staged=staged)
    with pytest.raises(DamagedError, match="two of its staged files have one name"):
        latest_plan(sealed_job.store, sealed_job.plan)


@pytest.mark.parametrize("changes", [{"shards": ({"shard": 2},)}, {"overrides": {"decode.tau": 1}}])
def test_an_extension_decodes_what_it_appends(
    sealed_job: StoredJob, changes: dict[str, Any]
) -> None:
    fields = appended(sealed_job).decision.model_dump() | changes
    with pytest.raises(ValidationError, match="an extension decodes the shards it appends"):
        Revision.model_validate(fields)


def test_damage_of_a_staged_file_is_a_finding(sealed_job: StoredJob) -> None:
    made = appended(sealed_job)
    grown, _ = extend(sealed_job)
    finish(grown)
    grown.path(made.key).write_bytes(b"torn")
    assert {key for key, _ in problems(grown)} == {made.key}


def test_a_seal_of_an_extension_without_its_rows_is_a_finding(sealed_job: StoredJob) -> None:
    grown, _ = extend(sealed_job)
    finish(grown)
    first, second = read_seals(grown.store)
    path = grown.path(seal_key(1))
    path.write_bytes(encode(second.model_copy(update={"shards": first.shards})))
    assert problems(grown) == [(seal_key(1), "its shards are not those of the plan")]
    path.write_bytes(encode(second.model_copy(update={"rows": 5})))
    assert problems(grown) == [(seal_key(1), "rows is 5, not 8")]


def test_a_decision_that_is_another_revision_is_damage(sealed_job: StoredJob) -> None:
    sealed_job.store.put_if_absent(revision_key(1), encode(appended(sealed_job).decision))
    sealed_job.path(revision_key(1)).rename(sealed_job.path(revision_key(2)))
    sealed_job.store.put_if_absent(revision_key(1), encode(decision(sealed_job, {0: None})))
    with pytest.raises(DamagedError, match=r"revisions/0002\.json: it is revision 1"):
        latest_plan(sealed_job.store, sealed_job.plan)
