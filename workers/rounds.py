"""One round as a plain description: which units one forward evaluates, and for whom.

Nothing is decided after this: the runner evaluates the units in order. Equal (prefix, state) pairs
appear once; several samples may share a state, and every sample keeps its own walk.
"""

from dataclasses import dataclass, field

import numpy as np

from spot.limits import ending
from spot.targets.base import State, Unit
from workers.prefix_cache import NO_PAGE, PrefixCache
from workers.sequence import Sequence

MAX_WRITES = 64  # blocks stored in one forward; the rest of a long prompt waits its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A sample's part of a round: its root first, then its drafts.

    A drafted full state is evaluated as the next block's opening behind it (a look-through):
    ``openings`` says where that stands, by the full state's bytes, and ``looked`` which page holds
    the full block for the time being.
    """

    sequence: Sequence
    states: list[State]
    indices: list[int]  # of the evaluated states
    openings: dict[bytes, int] = field(default_factory=dict)
    looked: dict[bytes, int] = field(default_factory=dict)

    def starts(self) -> list[int]:
        """Absolute position of each state's block."""
        length = len(self.sequence.root)
        ahead = set(self.openings.values())
        block = self.sequence.block
        return [(block + (i in ahead)) * length for i in range(len(self.states))]


@dataclass(slots=True, kw_only=True)
class Round:
    """All units of one forward: states first, then stores."""

    entries: list[Entry] = field(default_factory=list)
    states: list[Unit] = field(default_factory=list)
    stores: list[Unit] = field(default_factory=list)
    written: list[int] = field(default_factory=list)

    @property
    def num_units(self) -> int:
        """Block evaluations of the forward."""
        return len(self.states) + len(self.stores)


def take_stores(round_: Round, sequences: list[Sequence], *, length: int) -> None:
    """Move pending page writes into the round, oldest sequence first, up to the limit."""
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
        cost.positions += len(now) * length


def ready(round_: Round, sequences: list[Sequence], cache: PrefixCache) -> list[Sequence]:
    """Sequences whose whole prefix is clean or being written in this round."""
    written = set(round_.written)
    return [s for s in sequences if all(cache.is_clean(p) or p in written for p in s.pages)]


@dataclass(slots=True, kw_only=True)
class Packer:
    """Fills a round with roots and drafts, evaluating equal states once."""

    round_: Round
    cache: PrefixCache
    mask_id: int
    spare_pages: int  # pages that look-throughs may take without breaking a promise
    index_of: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def add(self, sequence: Sequence, drafts: list[State]) -> None:
        """Add a sequence's root and drafts."""
        entry = Entry(sequence=sequence, states=[], indices=[])
        self._state(entry, sequence.root, pages=sequence.pages)
        for state in drafts:
            if (state == self.mask_id).any():
                self._state(entry, state, pages=sequence.pages)
            else:
                self._look_through(entry, state)
        self.round_.entries.append(entry)
        cost = sequence.trajectory.cost
        cost.nfe, cost.rounds = cost.nfe + 1, cost.rounds + 1
        cost.drafted += len(entry.states) - 1
        cost.positions += (len(entry.states) + len(entry.looked)) * len(sequence.root)

    def _state(self, entry: Entry, state: State, *, pages: list[int]) -> None:
        name = (pages[-1] if pages else NO_PAGE, state.tobytes())
        if name not in self.index_of:
            self.index_of[name] = len(self.round_.states)
            start = len(pages) * len(state)
            self.round_.states.append(Unit(state=state, start=start, pages=tuple(pages)))
        entry.states.append(state)
        entry.indices.append(self.index_of[name])

    def _look_through(self, entry: Entry, full: State) -> None:
        """Draft a full block together with the opening behind it; silently not, if no page is."""
        sequence, name = entry.sequence, full.tobytes()
        length, block = len(full), len(sequence.pages)
        ends = ending(full, start=block * length, mask_id=self.mask_id, limits=sequence.limits)
        if name in entry.openings or ends is not None or self.spare_pages == 0:
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
        entry.looked[name], entry.openings[name] = page, len(entry.states)
        self._state(entry, np.full_like(full, self.mask_id), pages=[*sequence.pages, page])
