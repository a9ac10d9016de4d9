"""The fingerprint: what it covers, and how a difference is named."""

from typing import Any

import pytest

from manifests.errors import FingerprintError
from manifests.fingerprints import (
    FileIdentity,
    changed_fields,
    fingerprint,
    fingerprint_fields,
    require_same_fields,
    semantic_fields,
)
from manifests.job import JobSpec
from tests.manifests.builders import INPUT_FILES, TARGET_FILES, StoredJob, job_spec

OTHER = (FileIdentity(path="/elsewhere", bytes=11, sha256="c" * 64),)


def digest(job: JobSpec) -> str:
    """The fingerprint over unchanged files."""
    return fingerprint(job, input_files=INPUT_FILES, target_files=TARGET_FILES)


def test_semantic_fields_are_exactly_these() -> None:
    assert sorted(semantic_fields(job_spec())) == [
        "decode.ignore_eos",
        "decode.max_tokens",
        "decode.min_tokens",
        "decode.numerics",
        "decode.rule",
        "decode.stop",
        "decode.stop_token_ids",
        "decode.tau",
        "decode.temperature",
        "decode.top_k",
        "decode.top_p",
        "input.columns.id",
        "input.columns.messages",
        "input.columns.prompt",
        "input.limit",
        "input.uri",
        "output.trace",
        "sampling.n",
        "seed.scope",
        "seed.value",
        "shards.rows",
        "target.block_length",
        "target.path",
    ]


def test_semantic_values_are_plain_json() -> None:
    fields = semantic_fields(job_spec(decode={"stop": ["\n"], "max_tokens": 7}))
    assert (fields["decode.stop"], fields["decode.max_tokens"]) == (["\n"], 7)


@pytest.mark.parametrize(
    "changes",
    [
        {"decode": {"max_tokens": 7}},
        {"decode": {"stop": ["x"]}},
        {"sampling": {"n": 2}},
        {"seed": {"scope": "row"}},
        {"shards": {"rows": 3}},
        {"input": {"uri": "/data/prompts.jsonl", "columns": {"id": "key"}}},
    ],
)
def test_a_semantic_change_changes_the_fingerprint(changes: dict[str, Any]) -> None:
    assert digest(job_spec(**changes)) != digest(job_spec())


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": {"workers": 5, "batch": 3, "threads": 2}},
        {"drafter": {"path": "/drafter"}},
        {"decode": {"draft_budget": 20, "gamma": 0.1}},
        {"retry": {"attempts": 9}},
        {"output": {"uri": "/elsewhere"}},
    ],
)
def test_an_operational_change_keeps_the_fingerprint(changes: dict[str, Any]) -> None:
    assert digest(job_spec(**changes)) == digest(job_spec())


def test_contents_of_input_and_target_are_covered_and_their_names_are_not() -> None:
    def names(inputs: tuple[FileIdentity, ...], targets: tuple[FileIdentity, ...]) -> list[str]:
        old = fingerprint_fields(job_spec(), input_files=INPUT_FILES, target_files=TARGET_FILES)
        new = fingerprint_fields(job_spec(), input_files=inputs, target_files=targets)
        return changed_fields(old, new)

    moved = tuple(file.model_copy(update={"path": "/moved"}) for file in INPUT_FILES)
    assert names(moved, TARGET_FILES) == []
    assert names(OTHER, TARGET_FILES) == ["input (contents)"]
    assert names(INPUT_FILES, OTHER) == ["target (contents)"]


def test_changed_fields_include_those_that_only_one_side_has() -> None:
    assert changed_fields({"a": 1, "b": None}, {"a": 1, "c": 2}) == ["b", "c"]


def test_the_same_fields_are_accepted(job: StoredJob) -> None:
    require_same_fields(
        job.plan, job=job.plan.job, input_files=INPUT_FILES, target_files=TARGET_FILES
    )


def test_a_refusal_names_each_changed_field_with_both_values(job: StoredJob) -> None:
    other = job_spec(sampling={"n": 5}, decode={"temperature": 0.5})
    with pytest.raises(FingerprintError) as caught:
        require_same_fields(job.plan, job=other, input_files=INPUT_FILES, target_files=TARGET_FILES)
    assert "decode.temperature was 0.0, is 0.5; sampling.n was 2, is 5" in str(caught.value)
    assert "choose another output.uri" in str(caught.value)
