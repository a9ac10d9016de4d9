"""The job specification: combinations that cannot work, and that every leaf says its kind."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from manifests.job import JobSpec
from tests.manifests.builders import job_spec


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        ({"tau": 0.9}, "decode.tau belongs to the threshold rule"),
        ({"min_tokens": 9, "max_tokens": 8}, "decode.min_tokens is larger"),
        ({"top_p": 0.9}, "no effect at temperature 0"),
        ({"top_k": 5}, "no effect at temperature 0"),
        ({"temperature": float("inf")}, "finite number"),
        ({"temperature": -1}, "greater than or equal to 0"),
        ({"max_tokenz": 4}, "Extra inputs are not permitted"),
    ],
)
def test_settings_that_cannot_work_are_refused(decode: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(decode=decode)


def test_nucleus_sampling_is_accepted_above_temperature_zero() -> None:
    assert job_spec(decode={"temperature": 0.7, "top_p": 0.9, "top_k": 5}).decode.top_k == 5


def test_a_specification_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        job_spec().sampling.n = 3  # type: ignore[misc]


def leaves(model: type[BaseModel], prefix: str = "") -> list[tuple[str, Any, str | None]]:
    """Name, extra and description of every setting."""
    found = []
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found += leaves(annotation, f"{prefix}{name}.")
        else:
            found.append((prefix + name, field.json_schema_extra, field.description))
    return found


def test_every_setting_says_whether_it_can_change_an_output_and_what_it_is() -> None:
    unclear = [
        name
        for name, extra, description in leaves(JobSpec)
        if not isinstance(extra, dict)
        or extra.get("kind") not in ("semantic", "operational")
        or not description
    ]
    assert unclear == []
