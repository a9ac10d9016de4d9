"""One round as a plain description: which units one forward evaluates, and for whom.

Nothing is decided after this: the runner evaluates the units in order. Equal (prefix, state) pairs
appear once; several samples may share a state, and every sample keeps its own walk.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from spot.drafters.base import Drafts
from spot.limits import ending
from spot.targets.base import State, Unit
from workers.prefix_cache import NO_PAGE, PrefixCache
from workers.sequence import Sequence

MAX_WRITES = 64  # blocks stored in one forward; the rest of a long prompt waits its turn

FullDrafts = Literal["drop", "reuse", "look_through"]
"""What a drafted full state is good for: nothing; its keys and values, if it is accepted; those,
and the next block's opening behind it in the same forward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A sample's part of a round: its root first, then its drafts.

    ``stored`` says which page holds a drafted full state for the time being, by its bytes. If the
    round looks through, ``openings`` says where in ``states`` the opening behind it stands.
    """

    sequence: Sequence
    drafts: Drafts
    states: list[State]
    indices: list[int]  # of the evaluated states
    masses: list[float]  # of the states; 1 for the root
    steps: list[int] = field(default_factory=list)  # transitions made in the block before each
    openings: dict[bytes, int] = field(default_factory=dict)
    stored: dict[bytes, int] = field(default_factory=dict)

    def starts(self) -> list[int]:
        """Absolute position of each state's block."""
        length = len(self.sequence.root)
        ahead = set(self.openings.values())
        start = self.sequence.start
        return [start + (i in ahead) * length for i in range(len(self.states))]


@dataclass(slots=True, kw_only=True)
class Round:
    """All units of one forward: states first, then stores, then padding."""

    entries: list[Entry] = field(default_factory=list)
    states: list[Unit] = field(default_factory=list)
    stores: list[Unit] = field(default_factory=list)
    padding: list[Unit] = field(default_factory=list)
    written: list[int] = field(default_factory=list)

    @property
    def num_units(self) -> int:
        """Block evaluations of the forward."""
        return len(self.states) + len(self.stores) + len(self.padding)


def take_stores(
    round_: Round, sequences: list[Sequence], *, length: int, fused: bool = True
) -> None:
    """Move pending page writes into the round, oldest sequence first, up to the limit.

    Unless they are fused with the opening behind them, the stores of decoded blocks are counted.
    """
    for sequence in sequences:
        room = MAX_WRITES - len(round_.stores)
        now, sequence.writes = sequence.writes[:room], sequence.writes[room:]
        for write in now:
            round_.stores.append(
                Unit(
                    state=write.state,
                    start=write.block * length,
                    pages=tuple(sequence.pages[: write.block]),
                    write=write.page,
                )
            )
            round_.written.append(write.page)
        cost = sequence.trajectory.cost
        cost.nfe_prefill += any(write.is_prompt for write in now)
        cost.nfe_store += not fused and any(not write.is_prompt for write in now)
        cost.positions += len(now) * length


def ready(
    round_: Round, sequences: list[Sequence], cache: PrefixCache, *, fused: bool = True
) -> list[Sequence]:
    """Sequences whose whole prefix is clean or, if that may be fused, written in this round."""
    written = set(round_.written) if fused else set()
    return [s for s in sequences if all(cache.is_clean(p) or p in written for p in s.pages)]


@dataclass(slots=True, kw_only=True)
class Packer:
    """Fills a round with roots and drafts, evaluating equal states once."""

    round_: Round
    cache: PrefixCache
    mask_id: int
    full_drafts: FullDrafts
    spare_pages: int  # pages that full drafts may take without breaking a promise
    index_of: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def add(self, sequence: Sequence, drafts: Drafts, *, pad_to: int = 0) -> None:
        """Add a sequence's root and drafts, padded to ``pad_to`` units."""
        entry = Entry(sequence=sequence, drafts=drafts, states=[], indices=[], masses=[])
        self._state(entry, sequence.root, pages=sequence.pages, step=sequence.step, mass=1.0)
        for state, depth, mass in zip(
            drafts.states, drafts.depths.tolist(), drafts.masses.tolist(), strict=True
        ):
            if (state == self.mask_id).any():
                step = sequence.step + depth
                self._state(entry, state, pages=sequence.pages, step=step, mass=mass)
            elif self.full_drafts != "drop":
                self._full(entry, state, mass=mass)
        self.round_.entries.append(entry)
        num_units = len(entry.states) + len(entry.stored)
        padding = [self._unit(sequence.root, sequence.pages)] * (pad_to - num_units)
        self.round_.padding += padding
        cost = sequence.trajectory.cost
        cost.nfe, cost.rounds = cost.nfe + 1, cost.rounds + 1
        cost.drafted += len(entry.states) - 1
        cost.positions += (num_units + len(padding)) * len(sequence.root)

    def _unit(self, state: State, pages: list[int]) -> Unit:
        return Unit(state=state, start=len(pages) * len(state), pages=tuple(pages))

    def _state(
        self, entry: Entry, state: State, *, pages: list[int], step: int, mass: float
    ) -> None:
        name = (pages[-1] if pages else NO_PAGE, state.tobytes())
        if name not in self.index_of:
            self.index_of[name] = len(self.round_.states)
            self.round_.states.append(self._unit(state, pages))
        entry.states.append(state)
        entry.steps.append(step)
        entry.indices.append(self.index_of[name])
        entry.masses.append(mass)

    def _full(self, entry: Entry, full: State, *, mass: float) -> None:
        """Store a drafted full block, and open the next one behind it if the round looks through.

        Silently not, if no page is free: a draft is never owed.
        """
        sequence, name = entry.sequence, full.tobytes()
        length, block = len(full), len(sequence.pages)
        ends = ending(full, start=block * length, mask_id=self.mask_id, limits=sequence.limits)
        if name in entry.stored or ends is not None or self.spare_pages == 0:
            return
        page, is_new = self.cache.acquire(sequence.prefix_name, name)
        self.spare_pages -= 1
        if is_new:
            pages, start = tuple(sequence.pages), block * length
            self.round_.stores.append(Unit(state=full, start=start, pages=pages, write=page))
            self.round_.written.append(page)
        elif not self.cache.is_clean(page) and page not in self.round_.written:
            self.cache.release([page])  # somebody else will write it, but not in this round
            return
        entry.stored[name] = page
        if self.full_drafts == "look_through":
            entry.openings[name] = len(entry.states)
            opening = np.full_like(full, self.mask_id)
            self._state(entry, opening, pages=[*sequence.pages, page], step=0, mass=mass)
