"""The load-aware budget: as many drafts as the machine has slack for, scored over all sequences.

A draft costs a whole block and saves at most one transition later. Two decisions a round (design
"The engine and its budget"):

* the *gate*, before anything is drafted: from what recent drafts were worth and what forwards,
  levels of the drafter and the host cost, it says who drafts, how many and how deep. Where nobody
  should, a probe now and then keeps the knowledge fresh for less than 0.1% of the time.
* the *prefix scan*, once masses are known: of all candidates, sorted by worth, the best prefix. The
  price of a second is what the gate expects of it, corrected by what such rounds really gave.

Both discount worths by what came true under a load like the present one.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from workers.budget import NOTHING, Ask, Drafted, Name, Root, Spent
from workers.costs import Floats, ForwardSize, unit_size
from workers.draft_plan import Costs, Plan, best_plan, best_prefix
from workers.masses import (
    CHILD,
    NUM_BINS,
    Calibration,
    Discount,
    MassProfile,
    bin_of,
    by_depth,
    levels_of,
)

MAX_DRAFTS = 24
GAIN = 1.02  # drafting must promise this much more than not drafting
PROBE_SHARE = 0.0003  # of the time
PROBE = Ask(2, depth=2)
FAMILIAR = 3.0  # a bin of the profile is probed at any price until so much of it was seen
SLACK = 0.8  # drafts are grown down to this share of what one must be worth
# How long a shut gate is believed, at first and at most, and of how many loads it is remembered.
SHUT_ROUNDS, MOST_SHUT_ROUNDS, MOST_LOADS = 32, 256, 256
QUIET_ROUNDS = 16  # of rounds without drafts, one in so many is learnt from
REALISM_MEMORY, FORGIVENESS, DISCOUNT_FORGIVENESS = 0.02, 0.002, 0.1
LEAN_MEMORY, LEAN_LIMIT = 0.1, 1.5


Load = tuple[int, int]
"""Sequences of a round, and roughly how open the blocks of its roots are."""


def load_of(masked: list[int], *, num_sequences: int) -> Load:
    """The load of a round with these roots, by their masked positions."""
    return num_sequences, sum(map(int.bit_length, masked)) // len(masked)


class Shut(NamedTuple):
    """What is known of a load at which the gate was shut."""

    until: int  # the last round for which that is believed
    rounds: int  # for how many it was believed


@dataclass(slots=True)
class ShutLoads:
    """Loads at which the gate was found shut lately; asking again would only cost time.

    The more often in a row a load was found shut, the longer that is believed.
    """

    known: dict[Load, Shut] = field(default_factory=dict)

    def holds(self, load: Load, *, now: int) -> bool:
        """Whether the gate is shut for this load."""
        shut = self.known.get(load)
        return shut is not None and now <= shut.until

    def remember(self, load: Load, *, now: int) -> None:
        """It is, for some rounds."""
        before = self.known.get(load)
        rounds = SHUT_ROUNDS if before is None else min(2 * before.rounds, MOST_SHUT_ROUNDS)
        if len(self.known) >= MOST_LOADS:
            self.known.clear()
        self.known[load] = Shut(now + rounds, rounds)

    def forget(self, load: Load) -> None:
        """It was found open."""
        self.known.pop(load, None)


@dataclass(slots=True, kw_only=True)
class AutoBudget:
    """Decides by measured costs and realised acceptance."""

    costs: Costs
    profile: MassProfile = field(default_factory=MassProfile)
    calibration: Calibration = field(default_factory=Calibration)
    discounts: dict[int, Discount] = field(default_factory=dict)  # by class of loads
    leans: dict[Name, float] = field(default_factory=dict)  # a sequence's drafts against others'
    shut: ShutLoads = field(default_factory=ShutLoads)
    unfamiliar: set[int] = field(default_factory=lambda: set(range(NUM_BINS)))
    probe_credit_s: float = 0.0
    probe_price_s: float = 0.0  # of a probe, when one was last considered
    num_rounds: int = 0
    num_probes: int = 0
    is_probe: bool = False  # the drafts that were asked for last are one
    probed: bool = False  # the same of the round under way
    expected: float = 0.0  # transitions per second that the gate counts on next round
    promised: float = 0.0  # the same of the round under way; 0 where it has no drafts
    realism: float = 1.0  # realised against expected

    @property
    def rate(self) -> float:
        """Transitions that a second brings at this load: its price."""
        return self.expected * self.realism

    def discount(self, num_sequences: int) -> Discount:
        """Of the load's class: alone, 2 or 3, 4 to 7, and so on."""
        return self.discounts.setdefault(num_sequences.bit_length(), Discount())

    def is_shut(self, masked: list[int], *, num_sequences: int) -> bool:
        """The gate was found shut at this load lately, and no probe is due."""
        load = load_of(masked, num_sequences=num_sequences)
        return self.shut.holds(load, now=self.num_rounds) and not self._may_probe(masked)

    def ask(self, roots: list[Root], *, base: ForwardSize, num_sequences: int) -> list[Ask]:
        """The gate."""
        self.is_probe = False
        if not roots:
            return []
        load = load_of([root.masked for root in roots], num_sequences=num_sequences)
        if self.shut.holds(load, now=self.num_rounds):
            return self._probe(roots, base)
        self.leans = {r.name: self.leans.get(r.name, 1.0) for r in roots}
        asks = self._gate(roots, base=base, num_sequences=num_sequences)
        if asks is None:
            self.shut.remember(load, now=self.num_rounds)
            return self._probe(roots, base)
        self.shut.forget(load)
        return asks

    def _gate(
        self, roots: list[Root], *, base: ForwardSize, num_sequences: int
    ) -> list[Ask] | None:
        """What each root is asked for; None where nobody should draft."""
        factor = self.discount(num_sequences).factor
        leans = factor * np.array(list(self.leans.values()))
        worth = self.profile.expect([r.masked for r in roots], leans)
        plan = best_plan(roots, worth, base=base, num_sequences=num_sequences, costs=self.costs)
        alone = num_sequences / self.costs.alone(base, num_sequences)
        if plan is None or plan.rate * min(self.realism, 1.0) < GAIN * alone:
            return None
        self.expected = plan.rate
        return self._asks(roots, plan, factor)

    def _asks(self, roots: list[Root], plan: Plan, factor: float) -> list[Ask]:
        """The plan with room for luck, and the masses under which more of it would not pay.

        ``factor`` is what worths are multiplied with.
        """
        costs, num = self.costs, len(roots)
        context, masked = sum(r.context for r in roots) // num, sum(r.masked for r in roots) // num
        unit = unit_size(length=costs.length, context=context, masked=masked)
        handling_s = float(costs.host(0, 0, 0, 1) + costs.drafter(0, 0, 1))
        price = self.rate * (costs.added(plan.size, unit) + handling_s) / factor
        level = self.rate * float(costs.drafter(0, 1, 0)) / factor
        floor = self.calibration.inverse(SLACK * price)
        deeper = self.calibration.inverse((price + level) / CHILD)
        return [
            Ask(min(MAX_DRAFTS, 2 * count + 2), depth + 2, floor, deeper) if count else NOTHING
            for count, depth in zip(plan.counts.tolist(), plan.depths.tolist(), strict=True)
        ]

    def _probe(self, roots: list[Root], base: ForwardSize) -> list[Ask]:
        """Nobody drafts, or one root does, if a probe is due."""
        masked = [root.masked for root in roots]
        if not self._may_probe(masked):
            return [NOTHING] * len(roots)
        chosen = self._least_known(roots)
        unit = unit_size(
            length=self.costs.length, context=roots[chosen].context, masked=roots[chosen].masked
        )
        drafts = ForwardSize(*(PROBE.drafts * part for part in unit))
        drafting_s = float(self.costs.drafter(1, PROBE.depth, PROBE.drafts))
        self.probe_price_s = drafting_s + self.costs.added(base, drafts)
        if not self._may_probe(masked):
            return [NOTHING] * len(roots)
        self.probe_credit_s = max(0.0, self.probe_credit_s - self.probe_price_s)
        self.is_probe, self.num_probes = True, self.num_probes + 1
        return [PROBE if i == chosen else NOTHING for i in range(len(roots))]

    def _may_probe(self, masked: list[int]) -> bool:
        """Whether the last probe's price is saved up, or roots are of a kind hardly seen."""
        if self.probe_credit_s >= self.probe_price_s:
            return True
        return not self.unfamiliar.isdisjoint(map(bin_of, masked))

    def _least_known(self, roots: list[Root]) -> int:
        """The root of whose drafts the least was seen; equals take turns."""
        seen = self.profile.seen[[bin_of(root.masked) for root in roots]]
        first = self.num_probes % len(roots)
        return (int(np.argmin(np.roll(seen, -first))) + first) % len(roots)

    def choose(
        self, drafted: list[Drafted], *, base: ForwardSize, num_sequences: int, seconds: float
    ) -> list[int]:
        """The prefix scan; a probe is evaluated whatever it found."""
        worths = [self.calibration(d.drafts.masses.astype(np.float64)) for d in drafted]
        self._learn(drafted, worths, seconds)
        self.probed = self.is_probe
        if self.is_probe:
            return [len(w) for w in worths]
        self.promised = self.expected
        factor = self.discount(num_sequences).factor
        return best_prefix(
            drafted,
            [factor * worth for worth in worths],
            rate=self.rate,
            base=base,
            num_sequences=num_sequences,
            costs=self.costs,
        )

    def _learn(self, drafted: list[Drafted], worths: list[Floats], seconds: float) -> None:
        """What the drafter's call cost and found."""
        levels = [levels_of(d.drafts, depth=d.ask.depth, deeper=d.ask.deeper) for d in drafted]
        self.costs.drafter.observe(1.0, max(levels), sum(map(len, worths)), seconds=seconds)
        for each, worth, grown in zip(drafted, worths, levels, strict=True):
            spent = len(worth) >= each.ask.drafts
            bound = float(worth[-1]) if spent else float(self.calibration(np.array(each.ask.floor)))
            found = by_depth(each.drafts, worth, levels=grown, depth=each.ask.depth)
            ratio = self.profile.observe(each.root.masked, found, bound=bound)
            if self.profile.seen[bin_of(each.root.masked)] >= FAMILIAR:
                self.unfamiliar.discard(bin_of(each.root.masked))
            lean = self.leans.get(each.root.name, 1.0)
            lean *= 1.0 + LEAN_MEMORY * (min(ratio, 2.0) - 1.0)
            self.leans[each.root.name] = min(max(lean, 1 / LEAN_LIMIT), LEAN_LIMIT)

    def observe(self, spent: Spent) -> None:
        """Refresh costs, calibration and how far expectations can be trusted."""
        seconds = spent.target_s + spent.drafter_s + spent.host_s
        self.probe_credit_s += PROBE_SHARE * seconds
        self.num_rounds += 1
        if self.probed:
            self._settle_probe(spent, seconds)
        if not len(spent.masses) and not self.promised and self.num_rounds % QUIET_ROUNDS:
            return
        self.costs.target.observe(spent.size, spent.target_s)
        drafting = float(spent.drafter_s > 0.0)
        counts = (1.0, spent.num_sequences, drafting, len(spent.masses))
        self.costs.host.observe(*counts, seconds=spent.host_s)
        worth = self.calibration(spent.masses)
        self.discount(spent.num_sequences).observe(worth, spent.accepted)
        self.calibration.observe(spent.masses, spent.accepted)
        if self.promised > 0.0:
            made = spent.num_sequences + float(spent.accepted.sum())
            ratio = min(made / max(seconds * self.promised, 1e-9), 2.0)
            self.realism += REALISM_MEMORY * (ratio - self.realism)
        else:  # disappointments are forgotten in time
            self.realism += FORGIVENESS * (1.0 - self.realism)
            if not len(spent.masses):
                self.discount(spent.num_sequences).forget(DISCOUNT_FORGIVENESS)
        self.promised = 0.0

    def _settle_probe(self, spent: Spent, seconds: float) -> None:
        """What a probe's drafts brought is given back; one that paid opens the question again."""
        accepted = float(spent.accepted.sum())
        gained_s = seconds * accepted / (spent.num_sequences + accepted)
        self.probe_credit_s += gained_s
        if gained_s > self.probe_price_s:
            self.shut.known.clear()
        self.probed = False
