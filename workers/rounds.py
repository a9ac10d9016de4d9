"""One round as a plain description: which units one forward evaluates, and for whom.

Nothing is decided after this: the runner evaluates the units in order. Equal (prefix, state) pairs
appear once; several samples may share a state, and every sample keeps its own walk.
"""

from dataclasses import dataclass, field

from spot.targets.base import State, Unit
from workers.prefix_cache import PrefixCache
from workers.sequence import Sequence

MAX_WRITES = 64  # blocks stored in one forward; the rest of a long prompt waits its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A sample's part of a round: its root first, then its drafts."""

    sequence: Sequence
    states: list[State]
    indices: list[int]  # of the evaluated states


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


def add_states(
    round_: Round, sequences: list[Sequence], drafts: list[list[State]], *, length: int
) -> None:
    """Add each sequence's root and drafts, evaluating equal states once."""
    index_of: dict[tuple[int, bytes], int] = {}
    for sequence, drafted in zip(sequences, drafts, strict=True):
        states = [sequence.root, *drafted]
        indices = []
        for state in states:
            name = (sequence.prefix_name, state.tobytes())
            if name not in index_of:
                index_of[name] = len(round_.states)
                start, pages = sequence.block * length, tuple(sequence.pages)
                round_.states.append(Unit(state=state, start=start, pages=pages))
            indices.append(index_of[name])
        round_.entries.append(Entry(sequence=sequence, states=states, indices=indices))
        cost = sequence.trajectory.cost
        cost.nfe, cost.rounds = cost.nfe + 1, cost.rounds + 1
        cost.drafted += len(drafted)
        cost.positions += len(states) * length
