"""The record that every task family produces."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One prompt with its worked response and what a scorer needs to check an answer.

    ``reference`` is a JSON string; only the family's own ``check`` reads it.
    """

    family: str
    prompt: str
    response: str
    reference: str
