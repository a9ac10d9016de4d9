"""Jobs on targets that look both ways: what is off, what is refused, what is said of them."""

from typing import Any

import pytest
from pydantic import ValidationError

from manifests.canvas import require_context
from manifests.distribution import distribution_preserving
from manifests.fingerprints import semantic_fields
from manifests.job import JobSpec
from tests.manifests.builders import job_spec

CANVAS = {"cache_context": "prefix"}


def test_everything_about_pages_is_off_without_being_asked() -> None:
    decode = job_spec(decode=CANVAS).decode
    assert (decode.full_drafts, decode.fused_store, decode.padded) == ("drop", False, False)
    again = JobSpec.model_validate(job_spec(decode=CANVAS).model_dump())
    assert again.decode == decode


@pytest.mark.parametrize(
    "setting", [{"full_drafts": "look_through"}, {"full_drafts": "reuse"}, {"fused_store": True}]
)
def test_what_needs_exact_pages_is_refused(setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(ValidationError, match=f"decode.{name} .* needs exact prefix pages"):
        job_spec(decode=CANVAS | setting)


def test_padding_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"decode.padded True needs exact prefix pages"):
        job_spec(decode=CANVAS | {"padded": True})


def test_the_budget_is_load_aware_or_a_number() -> None:
    drafter = {"method": "chain"}
    assert job_spec(drafter=drafter, decode=CANVAS).drafts
    assert job_spec(drafter=drafter, decode=CANVAS | {"draft_budget": 8}).drafts
    assert not job_spec(drafter=drafter, decode=CANVAS | {"draft_budget": 0}).drafts
    assert not job_spec(decode=CANVAS).drafts


@pytest.mark.parametrize("context", ["prefix", "prefix+suffix"])
def test_no_such_job_preserves_the_targets_distribution(context: str) -> None:
    job = job_spec(decode={"cache_context": context})
    preserving, reason = distribution_preserving(job)
    assert not preserving
    assert reason.startswith(f"decode.cache_context is {context}, so keys and values outside")


def test_the_context_and_the_budget_of_tokens_are_part_of_what_a_sample_is() -> None:
    fields = semantic_fields(job_spec(decode=CANVAS))
    assert fields["decode.cache_context"] == "prefix"
    assert "decode.max_tokens" in fields


def test_a_context_is_set_exactly_where_the_target_needs_it() -> None:
    require_context("prefix", target="t", family="dream", exact_prefix=False)
    require_context(None, target="t", family="sdar", exact_prefix=True)
    with pytest.raises(ValueError, match=r"target.path t is of the llada family, .* no exact"):
        require_context(None, target="t", family="llada", exact_prefix=False)
    with pytest.raises(ValueError, match=r"prefix has no meaning .* whose prefix cache is exact"):
        require_context("prefix", target="t", family="sdar", exact_prefix=True)
