"""What is measured: one setting for each row of the result, in the order of the result."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import get_args

from benchmarks.document import Options, Protocol
from spot.transition import Rule

DRAFT_FREE = "draft_free"
LOSSY = ("greedy", "rejection_chain")  # verifiers that give other outputs
METHODS = ("spot", "spot_gamma", "spot_chain", "chain", "confidence_tree", "spiffy")
SAMPLED_METHODS = ("uncoupled", *LOSSY)  # only differ above temperature 0
SET_METHODS = ("spot_sets", "sets_stale")
ORACLES = ("oracle_position", "oracle_token", "oracle_joint")

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
BUDGETS = (8, 12, 20)
WIDE_BUDGETS = (8, 20)
WIDE_METHODS = (DRAFT_FREE, "spot", "spiffy")
SET_BUDGETS = (1, 2, 3, 4, 6, 8, 12)
TAUS = (0.9, 0.95)
TIMED_SET_BUDGETS, TIMED_TAU = (3, 6), 0.9
MANY, FEW = 64, 16

LEFT_OUT: tuple[Options, ...] = (
    {"chain": True},
    {"merged": False},
    {"hedge_below": 0.0},
    {"padded": True},
    {"gamma": 0.05},
    {"gamma": 0.1},
    {"full_drafts": "drop"},
    {"full_drafts": "reuse"},
    {"full_drafts": "drop", "fused_store": False},
)
STRICT, SAMPLED = Rule(), Rule(temperature=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row to measure.

    ``options`` names what differs from the method's recipe; ``timed`` asks for a wall ratio too.
    """

    protocol: Protocol
    rule: Rule
    method: str
    budget: int
    samples: int
    options: Options = field(default_factory=dict)
    timed: bool = False

    @property
    def control(self) -> str:
        """Names the draft-free run whose outputs this setting must reproduce."""
        rule = self.rule
        return f"{self.protocol}-{rule.name}-{rule.tau}-{rule.temperature:g}"

    @property
    def weight(self) -> int:
        """Rough cost, to start the heaviest first."""
        longer = 3 if self.protocol == "ignore_eos" else 1
        return self.samples * longer * (1 + self.budget)

    def __str__(self) -> str:
        tau = "" if self.rule.tau is None else f" {self.rule.tau:g}"
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        return (
            f"{self.protocol} {self.rule.name}{tau} T {self.rule.temperature:g} "
            f"{self.method} {self.budget}{options}"
        )


def plan(*, full: bool = False, samples: int | None = None) -> list[Setting]:
    """All settings; ``full`` adds ablations and oracles, ``samples`` replaces their numbers."""
    settings = [*_strict(), *_threshold(), *(_ablations() if full else ())]
    return [s if samples is None else replace(s, samples=samples) for s in settings]


def _strict() -> Iterator[Setting]:
    for rule, protocol in product((STRICT, SAMPLED), PROTOCOLS):
        yield _draft_free(protocol, rule)
        methods = METHODS if rule == STRICT else (*METHODS, *SAMPLED_METHODS)
        for method, budget in product(methods, BUDGETS):
            wide = method in WIDE_METHODS and budget in WIDE_BUDGETS
            yield Setting(
                protocol=protocol,
                rule=rule,
                method=method,
                budget=budget,
                samples=MANY if wide else FEW,
                timed=rule == STRICT and protocol == "early_stop" and budget in WIDE_BUDGETS,
            )


def _threshold() -> Iterator[Setting]:
    for tau, protocol in product(TAUS, PROTOCOLS):
        rule = Rule(name="threshold", tau=tau)
        yield _draft_free(protocol, rule)
        timed = tau == TIMED_TAU and protocol == "early_stop"
        for method, budget in product(SET_METHODS, SET_BUDGETS):
            yield Setting(
                protocol=protocol,
                rule=rule,
                method=method,
                budget=budget,
                samples=FEW,
                timed=timed and budget in TIMED_SET_BUDGETS,
            )


def _draft_free(protocol: Protocol, rule: Rule) -> Setting:
    return Setting(protocol=protocol, rule=rule, method=DRAFT_FREE, budget=0, samples=MANY)


def _ablations() -> Iterator[Setting]:
    """SPOT with one part changed, and what an oracle would gain; temperature 0."""
    for protocol in PROTOCOLS:
        for options, budget in product(LEFT_OUT, WIDE_BUDGETS):
            yield _ablation(protocol, "spot", budget, options)
        for method, full_drafts, budget in product(ORACLES, ("look_through", "drop"), BUDGETS):
            yield _ablation(protocol, method, budget, {"full_drafts": full_drafts})


def _ablation(protocol: Protocol, method: str, budget: int, options: Options) -> Setting:
    return Setting(
        protocol=protocol,
        rule=STRICT,
        method=method,
        budget=budget,
        samples=FEW,
        options=options,
    )
