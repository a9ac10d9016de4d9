"""The tutorial's last word on every sample: what is kept of it, and what is left out."""

import json
import re
from typing import Any

CLOSING = re.compile(r"The answer is \d+\.$")


def keep(sample: dict[str, Any]) -> str | None:
    """The text to keep, without blanks at its end; None leaves the sample out.

    Left out are answers that were cut off, and answers without the form of their task. Whether an
    answer is right is not looked at: that is for the scorer.
    """
    text = str(sample["text"]).rstrip()
    if sample["finish_reason"] != "stop":
        return None
    return text if _FORMS[json.loads(sample["carried"])["family"]](text) else None


def _is_closed(text: str) -> bool:
    return CLOSING.search(text) is not None


def _is_function(text: str) -> bool:
    """Only compiled, never run: this happens in a worker."""
    try:
        compile(text, "<answer>", "exec")
    except (SyntaxError, ValueError):
        return False
    return text.startswith("def ")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


_FORMS = {"arithmetic": _is_closed, "functions": _is_function, "extraction": _is_object}
