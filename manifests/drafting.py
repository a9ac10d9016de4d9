"""Which drafting methods there are, and what each of them goes together with.

A combination that cannot work is refused where the job file is read; where only the drafter
directory says which method it is made for, when the directory is looked at.
"""

from typing import Literal, NamedTuple, NoReturn, get_args

from manifests.rules import RuleName, is_released

Verifier = Literal["coupled", "uncoupled", "greedy", "rejection"]
Method = Literal[
    "spot",
    "spot_chain",
    "spot_sets",
    "sets_stale",
    "chain",
    "confidence_tree",
    "spiffy",
    "stale_rule",
]


class Traits(NamedTuple):
    """What a method needs and takes."""

    needs_path: bool
    rules: tuple[RuleName, ...]
    has_gamma: bool


TRAITS: dict[Method, Traits] = {
    "spot": Traits(needs_path=True, rules=("strict",), has_gamma=True),
    "spot_chain": Traits(needs_path=True, rules=("strict",), has_gamma=True),
    "spot_sets": Traits(needs_path=True, rules=("threshold",), has_gamma=True),
    "sets_stale": Traits(needs_path=False, rules=("threshold",), has_gamma=False),
    "chain": Traits(needs_path=False, rules=("strict", "threshold"), has_gamma=False),
    "confidence_tree": Traits(needs_path=False, rules=("strict", "threshold"), has_gamma=False),
    "spiffy": Traits(needs_path=True, rules=("strict", "threshold"), has_gamma=False),
    "stale_rule": Traits(needs_path=False, rules=get_args(RuleName), has_gamma=False),
}


def require_path(method: Method, path: str | None) -> None:
    """Raise ValueError unless a drafter directory is named exactly where one is used."""
    needs_path = TRAITS[method].needs_path
    if needs_path and path is None:
        raise ValueError(f"drafter.method {method} needs drafter.path, a drafter directory")
    if not needs_path and path is not None:
        raise ValueError(f"drafter.method {method} uses no drafter.path; remove it")


def require_fit(method: Method, *, rule: RuleName, gamma: float) -> None:
    """Raise ValueError unless a method drafts for the rule and takes the mass floor.

    ``rule`` is the one that is drafted for (`Decode.drafts_as`).
    """
    traits = TRAITS[method]
    if rule not in traits.rules:
        _refuse(method, rule)
    if gamma > 0.0 and not traits.has_gamma:
        raise ValueError(f"decode.gamma has no effect with drafter.method {method}; remove it")


def _refuse(method: Method, rule: RuleName) -> NoReturn:
    """Say why a method does not draft for a rule, and what does."""
    if is_released(rule):
        raise ValueError(
            f"drafter.method {method} does not know how decode.rule {rule} selects with these "
            "settings; use drafter.method: stale_rule"
        )
    if rule == "threshold":
        raise ValueError(
            f"drafter.method {method} proposes single commits, which decode.rule threshold rarely "
            "makes; use drafter.method: spot_sets or sets_stale"
        )
    raise ValueError(
        f"drafter.method {method} proposes sets of commits, and decode.rule strict makes one at a "
        "time; use drafter.method: spot or chain"
    )


def require_chain(method: Method | None, *, verifier: Verifier) -> None:
    """Raise ValueError unless the verifier's drafts can be what it needs."""
    if verifier == "rejection" and method != "chain":
        raise ValueError(
            "decode.verifier rejection verifies drawn chains only; use drafter.method: chain"
        )
