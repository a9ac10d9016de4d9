"""Errors as text: our own words are kept, others' may quote a user and are not."""

from manifests.errors import DamagedError
from workers.errors import MAX_MESSAGE_CHARACTERS, describe


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_our_own_errors_keep_their_words() -> None:
    assert describe(DamagedError("plan.json: broken")) == "DamagedError: plan.json: broken"


def test_other_errors_are_told_by_the_line_that_raised_them() -> None:
    text = describe(raised(KeyError("the user's secret prompt")))
    assert text.startswith("KeyError at ")
    assert "test_errors.py:" in text
    assert "secret" not in text


def test_long_messages_are_cut() -> None:
    assert len(describe(OSError("x" * 10_000))) == MAX_MESSAGE_CHARACTERS
