"""The group `on_finish`: addresses that are none, and secrets that do not belong there."""

import pytest
from pydantic import ValidationError

from tests.manifests.builders import job_spec


@pytest.mark.parametrize("webhook", [None, "env:HOOK", "https://example.org/a", "http://h:8/x"])
def test_addresses_and_variables_are_accepted(webhook: str | None) -> None:
    assert job_spec(on_finish={"webhook": webhook}).on_finish.webhook == webhook


@pytest.mark.parametrize("webhook", ["ftp://example.org/a", "example.org", "https://"])
def test_what_is_no_address_is_refused(webhook: str) -> None:
    with pytest.raises(ValidationError, match="is an http:// or https:// address, or env:NAME"):
        job_spec(on_finish={"webhook": webhook})


@pytest.mark.parametrize("webhook", ["https://me:secret@example.org", "https://me@example.org"])
def test_a_password_is_refused_without_being_repeated(webhook: str) -> None:
    with pytest.raises(ValidationError, match="write env:NAME") as raised:
        job_spec(on_finish={"webhook": webhook})
    assert "secret" not in raised.value.errors()[0]["msg"]
