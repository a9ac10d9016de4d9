"""The target's rules by name: which constants each one has, and what it calls confidence.

``strict`` and ``threshold`` are our own. The others are the samplers of released loops, under the
names and with the confidence that those loops have, for those who come from there.
"""

from typing import Literal, NamedTuple

RuleName = Literal[
    "strict",
    "threshold",
    "low_confidence_static",
    "low_confidence_dynamic",
    "llada2_threshold",
    "sequential",
    "entropy_bounded",
]
Constant = Literal["tau", "denoising_steps", "entropy_bound"]

_UNTEMPERED = "untempered probability of the position's best token"
_DRAWN = (
    "probability of the position's drawn token in the law it was drawn from, after temperature, "
    "top-k and top-p; at temperature 0 the untempered probability of its best token"
)


class RuleTraits(NamedTuple):
    """What a rule has and needs."""

    needs: tuple[Constant, ...]
    takes: tuple[Constant, ...]  # beside those that it needs
    released_with: str | None  # the released loop's own constants; None for our rules
    selects_by_drawn_token: bool  # above temperature 0
    confidence: str  # what the recorded confidence of a commit is


def _own(*needs: Constant) -> RuleTraits:
    return RuleTraits(needs, (), None, False, _UNTEMPERED)


RULES: dict[RuleName, RuleTraits] = {
    "strict": _own(),
    "threshold": _own("tau"),
    "low_confidence_static": RuleTraits((), ("denoising_steps",), "", True, _DRAWN),
    "low_confidence_dynamic": RuleTraits(
        ("tau",), ("denoising_steps",), "SDAR's generate.py has 0.85", True, _DRAWN
    ),
    "llada2_threshold": RuleTraits(
        ("tau",), ("denoising_steps",), "LLaDA2's generate has 0.95", True, _DRAWN
    ),
    "sequential": RuleTraits((), ("denoising_steps",), "", False, _DRAWN),
    "entropy_bounded": RuleTraits(
        ("entropy_bound",), (), "SDAR's generate.py has 0.35", False, _DRAWN
    ),
}


def is_released(rule: RuleName) -> bool:
    """Whether it is a released loop's rule."""
    return RULES[rule].released_with is not None


def require_own(rule: RuleName, *, what: str) -> None:
    """Raise ValueError if something that knows our own rules only is asked about another one."""
    if is_released(rule):
        raise ValueError(
            f"{what} knows decode.rule strict and threshold only, and {rule} is a released loop's; "
            "set one of the two"
        )


def require_constants(
    rule: RuleName,
    *,
    tau: float | None,
    denoising_steps: int | None,
    entropy_bound: float | None,
) -> None:
    """Raise ValueError unless a rule is given the constants it has, and no others."""
    traits = RULES[rule]
    given: dict[Constant, float | None] = {
        "tau": tau,
        "denoising_steps": denoising_steps,
        "entropy_bound": entropy_bound,
    }
    for name, value in given.items():
        if value is not None and name not in (*traits.needs, *traits.takes):
            owners = ", ".join(r for r, t in RULES.items() if name in (*t.needs, *t.takes))
            raise ValueError(f"decode.{name} belongs to the rules {owners}; with {rule}, remove it")
    remark = f" ({traits.released_with})" if traits.released_with else ""
    if "tau" in traits.needs and not (tau is not None and 0.0 < tau < 1.0):
        raise ValueError(
            f"decode.rule {rule} needs decode.tau, a number between 0 and 1 (both excluded){remark}"
        )
    if "entropy_bound" in traits.needs and not (entropy_bound or 0.0) > 0.0:
        raise ValueError(
            f"decode.rule {rule} needs decode.entropy_bound, a number of nats above 0{remark}"
        )


def require_choice(rule: RuleName, *, temperature: float, top_k: int) -> None:
    """Raise ValueError if top-k leaves a rule nothing to tell positions apart by."""
    if RULES[rule].selects_by_drawn_token and temperature > 0.0 and top_k == 1:
        raise ValueError(
            f"with decode.top_k 1 every confidence of decode.rule {rule} is 1, so that positions "
            "could not be told apart; set decode.temperature: 0 and remove decode.top_k"
        )


def require_penalty(rule: RuleName, *, penalty: float, token_ids: tuple[int, ...]) -> None:
    """Raise ValueError unless a penalty on confidence is whole, and the rule selects by it."""
    if (penalty > 0.0) != bool(token_ids):
        raise ValueError(
            "decode.confidence_penalty and decode.penalized_token_ids say how much and of which "
            "ids, and mean nothing alone; set both, or neither"
        )
    if penalty > 0.0 and is_released(rule):
        raise ValueError(
            f"decode.confidence_penalty: decode.rule {rule} selects as its released loop does, "
            "which has no such penalty; use strict or threshold"
        )


def require_schedule(denoising_steps: int | None, *, block_length: int) -> None:
    """Raise ValueError if a schedule has more transitions than a block has positions."""
    if denoising_steps is not None and denoising_steps > block_length:
        raise ValueError(
            f"decode.denoising_steps {denoising_steps} is above the target's block length "
            f"{block_length}, so that some would commit nothing; set {block_length} or less"
        )


def drafts_as(rule: RuleName, *, temperature: float, denoising_steps: int | None) -> RuleName:
    """The rule whose drafters fit: our own one that makes the same transitions, if there is one."""
    if temperature > 0.0 or denoising_steps is not None:
        return rule
    if rule == "low_confidence_static":
        return "strict"
    if rule in ("low_confidence_dynamic", "llada2_threshold"):
        return "threshold"
    return rule
