"""Decisions to decode rows again: what they may choose and what they may change."""

from typing import Any

import pytest
from pydantic import ValidationError

from manifests.errors import RevisionError
from manifests.job import JobSpec
from manifests.revision import RevisedShard, overrides_between, with_overrides
from tests.manifests.builders import StoredJob, job_spec
from tests.manifests.revising import decision

GREEDY = {"verifier": "greedy", "draft_budget": 4}


@pytest.mark.parametrize("rows", [(), (1, 1), (2, 1)])
def test_rows_of_a_revised_shard_ascend(rows: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="rows of shard 3 are not one or more in ascending"):
        RevisedShard(shard=3, rows=rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parent": 1}, "the parent of revision 1 is not the one before"),
        ({"shards": ({"shard": 1}, {"shard": 0})}, "its shards are not in ascending order"),
        ({"shards": ()}, "at least 1 item"),
        ({"revision": 0}, "greater than or equal to 1"),
        ({"surprise": 1}, "Extra inputs"),
    ],
)
def test_a_decision_that_contradicts_itself_is_refused(
    sealed_job: StoredJob, changes: dict[str, Any], message: str
) -> None:
    made = decision(sealed_job, {0: None})
    with pytest.raises(ValidationError, match=message):
        type(made).model_validate(made.model_dump() | changes)


def test_two_who_ask_for_the_same_at_different_moments_ask_the_same(sealed_job: StoredJob) -> None:
    made = decision(sealed_job, {0: (1,)})
    assert made.asks_the_same_as(decision(sealed_job, {0: (1,)}, created="later"))
    assert not made.asks_the_same_as(decision(sealed_job, {0: (2,)}))
    assert not made.asks_the_same_as(
        decision(sealed_job, {0: (1,)}, overrides={"decode.max_tokens": 9})
    )


@pytest.mark.parametrize(
    ("groups", "overrides"),
    [
        ({}, {}),
        ({"decode": {"max_tokens": 9}}, {"decode.max_tokens": 9}),
        (
            {"decode": {"temperature": 0.5, "top_k": 3}},
            {"decode.temperature": 0.5, "decode.top_k": 3},
        ),
        ({"decode": {"stop": ("x",)}}, {"decode.stop": ["x"]}),
        ({"cluster": {"workers": 9, "batch": 3}, "decode": {"draft_budget": 3}}, {}),
    ],
)
def test_a_revision_carries_exactly_the_settings_that_can_change_an_output(
    groups: dict[str, Any], overrides: dict[str, Any]
) -> None:
    revised = job_spec(**groups)
    assert overrides_between(job_spec(), revised) == overrides
    carried = with_overrides(job_spec(), overrides)
    assert overrides_between(revised, carried) == {}


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        ({"shards": {"rows": 2}}, r"shards.rows \(was 64, is 2\)"),
        ({"sampling": {"n": 2}}, "sampling.n"),
        ({"input": {"uri": "/other"}}, "input.uri"),
        ({"target": {"path": "/other"}}, "target.path"),
        ({"seed": {"value": 1}}, "seed.value"),
        ({"output": {"uri": "/out/job", "trace": "commits"}}, "output.trace"),
        ({"decode": {"numerics": "fast"}}, "decode.numerics"),
        ({"decode": {"verifier": "greedy"}}, "decode.verifier"),
        ({"work": "null"}, "work"),
    ],
)
def test_a_setting_that_all_rows_have_in_common_is_refused_by_name(
    groups: dict[str, Any], name: str
) -> None:
    with pytest.raises(RevisionError, match=f"a retry cannot change {name}"):
        overrides_between(job_spec(), job_spec(**groups))


def lossy(path: str, **decode: Any) -> JobSpec:
    return job_spec(decode=GREEDY | decode, drafter={"path": path})


def test_drafting_settings_are_carried_where_drafts_can_change_outputs() -> None:
    changed = lossy("/one", draft_budget=5)
    assert overrides_between(lossy("/one"), changed) == {"decode.draft_budget": 5}


def test_another_drafter_is_refused_where_drafts_can_change_outputs() -> None:
    with pytest.raises(RevisionError, match=r"cannot change drafter.path, since with decode.verif"):
        overrides_between(lossy("/one"), lossy("/other"))
    exact = [job_spec(drafter={"path": path}) for path in ("/one", "/other")]
    assert overrides_between(*exact) == {}


def test_overrides_that_do_not_go_together_are_errors() -> None:
    with pytest.raises(ValueError, match=r"min_tokens is larger than decode\.max_tokens"):
        with_overrides(job_spec(), {"decode.min_tokens": 5, "decode.max_tokens": 4})
