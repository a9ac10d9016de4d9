"""The fingerprint: what it covers, and how a difference is named."""

from pathlib import Path
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
from tests.manifests.builders import INPUT_FILES, TARGET_FILES, StoredJob, job_spec, make_job

OTHER = (FileIdentity(path="/elsewhere", bytes=11, sha256="c" * 64),)


def digest(job: JobSpec) -> str:
    """The fingerprint over unchanged files."""
    return fingerprint(job, input_files=INPUT_FILES, target_files=TARGET_FILES)


def test_semantic_fields_are_exactly_these() -> None:
    assert sorted(semantic_fields(job_spec())) == [
        "decode.banned_token_ids",
        "decode.cache_context",
        "decode.confidence_penalty",
        "decode.denoising_steps",
        "decode.entropy_bound",
        "decode.ignore_eos",
        "decode.max_tokens",
        "decode.min_tokens",
        "decode.numerics",
        "decode.penalized_token_ids",
        "decode.rule",
        "decode.stop",
        "decode.stop_token_ids",
        "decode.tau",
        "decode.temperature",
        "decode.top_k",
        "decode.top_p",
        "decode.verifier",
        "input.columns.id",
        "input.columns.max_tokens",
        "input.columns.messages",
        "input.columns.prompt",
        "input.columns.seed",
        "input.columns.temperature",
        "input.delimiter",
        "input.filter",
        "input.format",
        "input.limit",
        "input.uri",
        "output.carry",
        "output.postprocess",
        "output.trace",
        "prompt.chat_template",
        "prompt.chat_template_args",
        "prompt.system",
        "prompt.template",
        "sampling.n",
        "seed.scope",
        "seed.value",
        "shards.rows",
        "target.block_length",
        "target.dtype",
        "target.path",
        "target.revision",
        "work",
    ]


def test_semantic_values_are_plain_json() -> None:
    fields = semantic_fields(job_spec(decode={"stop": ["\n"], "max_tokens": 7}))
    assert (fields["decode.stop"], fields["decode.max_tokens"]) == (["\n"], 7)


@pytest.mark.parametrize(
    "changes",
    [
        {"work": "collect"},
        {"decode": {"max_tokens": 7}},
        {"decode": {"rule": "threshold", "tau": 0.9}},
        {"decode": {"verifier": "uncoupled"}},
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
        {"drafter": {"method": "chain"}},
        {"decode": {"draft_budget": 20, "gamma": 0.1}},
        {"decode": {"full_drafts": "drop", "fused_store": False, "padded": True}},
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


LOSSY = [
    {"verifier": "greedy", "temperature": 1.0, "draft_budget": 4},
    {"verifier": "rejection", "temperature": 1.0, "draft_budget": 4},
    {"numerics": "fast", "draft_budget": 4},
]
EXACT = {"verifier": "uncoupled", "temperature": 1.0, "draft_budget": 4}


def drafted(decode: dict[str, Any], **groups: Any) -> JobSpec:
    return job_spec(**({"drafter": {"method": "chain"}, "decode": decode} | groups))


@pytest.mark.parametrize("decode", LOSSY, ids=["greedy", "rejection", "fast"])
def test_where_drafts_can_change_outputs_drafting_is_semantic(decode: dict[str, Any]) -> None:
    assert sorted(semantic_fields(drafted(decode)).keys() - semantic_fields(job_spec()).keys()) == [
        "cluster.batch",
        "decode.draft_budget",
        "decode.full_drafts",
        "decode.gamma",
        "drafter.method",
    ]


@pytest.mark.parametrize(
    "groups",
    [
        {"draft_budget": 5},
        {"full_drafts": "drop"},
        {"drafter": {"method": "confidence_tree"}},
        {"cluster": {"batch": 3}},
    ],
)
def test_a_change_of_drafting_counts_where_it_can_change_outputs(groups: dict[str, Any]) -> None:
    setting = {name: value for name, value in groups.items() if not isinstance(value, dict)}
    group = {name: value for name, value in groups.items() if isinstance(value, dict)}
    for decode, counts in ((LOSSY[0], True), (LOSSY[2], True), (EXACT, False)):
        changed = drafted(decode | setting, **group)
        assert (digest(changed) != digest(drafted(decode))) == counts


@pytest.mark.parametrize(("decode", "counts"), [*((d, True) for d in LOSSY[:1]), (EXACT, False)])
def test_contents_of_the_drafter_count_where_drafts_can_change_outputs(
    decode: dict[str, Any], counts: bool
) -> None:
    old, new = (
        fingerprint_fields(
            drafted(decode, drafter={"path": path}),
            input_files=INPUT_FILES,
            target_files=TARGET_FILES,
            drafter_files=files,
        )
        for path, files in (("/here", INPUT_FILES), ("/there", OTHER))
    )
    assert changed_fields(old, new) == (["drafter (contents)"] if counts else [])


def test_the_place_of_the_drafter_never_counts() -> None:
    here, there = (drafted(LOSSY[0], drafter={"path": path}) for path in ("/here", "/there"))
    assert digest(here) == digest(there)


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


def test_a_changed_verifier_is_named_without_what_follows_from_it(job: StoredJob) -> None:
    greedy = job_spec(sampling={"n": 2}, decode={"verifier": "greedy"})
    with pytest.raises(FingerprintError) as caught:
        require_same_fields(
            job.plan, job=greedy, input_files=INPUT_FILES, target_files=TARGET_FILES
        )
    assert "(decode.verifier was 'coupled', is 'greedy')" in str(caught.value)


def test_another_drafter_is_refused_where_drafts_can_change_outputs(tmp_path: Path) -> None:
    plan = make_job(tmp_path, decode={"verifier": "greedy"}).plan
    with pytest.raises(FingerprintError, match=r"drafter \(contents\) was"):
        require_same_fields(
            plan,
            job=plan.job,
            input_files=INPUT_FILES,
            target_files=TARGET_FILES,
            drafter_files=OTHER,
        )
