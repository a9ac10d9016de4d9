"""The group `on_finish` of a job file: who is told when a run has ended."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from manifests.settings import Group, operational

_VARIABLE = "env:"


class OnFinish(Group):
    """Who is told that a run has ended, however it ended; never changes its exit code."""

    command: tuple[str, ...] = operational(
        (),
        "program and arguments, started without a shell; it finds SPOTBATCH_JOB, SPOTBATCH_URI, "
        "SPOTBATCH_OUTCOME and SPOTBATCH_EXIT_CODE in its environment, and the same as JSON on its "
        "stdin",
    )
    webhook: str | None = operational(
        None,
        "address that gets the JSON by POST, or `env:NAME`, the variable that has it: the job file "
        "is kept with the job, so a secret address belongs into a variable",
    )
    attempts: Annotated[int, Field(ge=1, le=10)] = Field(
        3,
        description="tries of the webhook, with growing pauses",
        json_schema_extra={"kind": "operational"},
    )
    timeout_s: Annotated[float, Field(gt=0.0, le=600.0)] = Field(
        30.0,
        description="time for the command, and for one try of the webhook (seconds)",
        json_schema_extra={"kind": "operational"},
    )

    @field_validator("webhook")
    @classmethod
    def _webhook_is_an_address(cls, webhook: str | None) -> str | None:
        if webhook is None or webhook.startswith(_VARIABLE):
            return webhook
        parts = urlsplit(webhook)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("on_finish.webhook is an http:// or https:// address, or env:NAME")
        if parts.username or parts.password:
            raise ValueError(
                "on_finish.webhook has a password in it, and the job file is kept with the job; "
                "put the address into a variable and write env:NAME"
            )
        return webhook
