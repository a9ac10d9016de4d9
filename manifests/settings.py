"""How settings of a job file are declared: each says its unit and its kind.

*semantic*: part of the fingerprint, it can change an output. *operational*: it changes only cost,
speed or place, and may differ between runs. *drafting*: about drafts; operational, but semantic in
a job whose outputs depend on them.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["semantic", "operational", "drafting"]
Positive = Annotated[int, Field(ge=1)]


def semantic(default: Any, description: str) -> Any:
    """A field that can change an output; part of the fingerprint."""
    return Field(default, description=description, json_schema_extra={"kind": "semantic"})


def operational(default: Any, description: str) -> Any:
    """A field that changes only cost, speed or place; outside the fingerprint."""
    return Field(default, description=description, json_schema_extra={"kind": "operational"})


def drafting(default: Any, description: str) -> Any:
    """A field about drafts; in the fingerprint where `Decode.lets_drafts_matter`."""
    return Field(default, description=description, json_schema_extra={"kind": "drafting"})


class Group(BaseModel):
    """Base of every group: frozen, unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=False,
        allow_inf_nan=False,
        hide_input_in_errors=True,  # somebody may have put credentials where they do not belong
    )
