"""A model of the protocol over one shard, small enough to look at every state it can reach.

Objects are values in a state; every step is one request or one death. What the real protocol never
relies on happens whenever it can: replies get lost, processes die between any two steps, attempts
wake up late, garbage is collected at any time, and what an attempt generates differs each time.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Collection = Literal[
    "none",
    "sealed",  # what `manifests.garbage` does
    "superseded",  # the same with its option: only the highest seal protects
    "recorded",  # a record of the shard names another attempt
    "unreferenced",  # no record names it
    "revision first",  # as `sealed`, but files are listed after it was seen what is open
    "first record",  # the record of the first run names another attempt
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The protocol, or one of its plausible mistakes."""

    collection: Collection = "sealed"
    shared_name: bool = False
    """Data goes to one final name, replacing what is there."""
    check_then_put: bool = False
    """The record is put if a look before said that there is none."""
    attempt_of_arguments: bool = False
    """Two executions of one call use the same attempt id."""
    unknown_is_failure: bool = False
    """An attempt whose record has an unknown outcome removes its data."""
    record_in_place: bool = False
    """A revision replaces the record of the first run."""
    decision_replaced: bool = False
    """A second decision replaces the first one."""
    seal_of_listing: bool = False
    """The seal names a data file that is there, whoever put it."""
    record_first: bool = False
    """The record is put before the data."""


class Record(NamedTuple):
    """What a commit record or a seal says of the shard."""

    key: str
    content: str


Phase = Literal["idle", "copy", "data", "check", "record", "read", "delete", "committed", "ended"]
ENDED: frozenset[Phase] = frozenset({"committed", "ended"})


class Attempt(NamedTuple):
    """One execution: where it is, and what it would commit."""

    name: str
    revision: int
    phase: Phase = "idle"
    decision: str = ""
    """What it read of its revision."""


class Collector(NamedTuple):
    """One pass of the garbage collection."""

    listed: tuple[str, ...] | None = None
    uncertain: bool | None = None
    """Whether an open revision commits the shard."""
    doomed: tuple[str, ...] | None = None


class State(NamedTuple):
    """Everything in storage and every process."""

    data: tuple[tuple[str, str], ...]  # sorted pairs of key and content
    records: tuple[Record | None, Record | None]  # by revision
    decision: str | None  # of revision 1
    seals: tuple[Record | None, Record | None]
    attempts: tuple[Attempt, ...]
    collector: Collector

    def contents(self) -> dict[str, str]:
        """Data objects by key."""
        return dict(self.data)

    @property
    def open_revision(self) -> int | None:
        """What a run would work on; None: complete."""
        if self.seals[0] is None:
            return 0
        return 1 if self.decision is not None and self.seals[1] is None else None


def start(*revisions: int) -> State:
    """Nothing stored, and an attempt at each of these revisions waiting to begin."""
    attempts = tuple(Attempt(f"a{i}", revision) for i, revision in enumerate(revisions))
    return State((), (None, None), None, (None, None), attempts, Collector())


def with_data(state: State, key: str, content: str | None) -> State:
    """With one object put, replaced or (None) removed."""
    data = state.contents()
    data.pop(key, None)
    if content is not None:
        data[key] = content
    return state._replace(data=tuple(sorted(data.items())))


def with_attempt(state: State, index: int, **changes: str) -> State:
    """With one attempt changed."""
    attempts = list(state.attempts)
    attempts[index] = attempts[index]._replace(**changes)  # type: ignore[arg-type]
    return state._replace(attempts=tuple(attempts))


def plain(state: State) -> State:
    """The state in which attempts that differ by nothing but their names have exchanged them.

    Only for variants in which each attempt has a name of its own for its data. An attempt that has
    come to its end does nothing any more, however it ended.
    """
    order = sorted(state.attempts, key=lambda attempt: _signature(state, attempt))
    names = {attempt.name: f"a{index}" for index, attempt in enumerate(order)}

    def renamed(record: Record | None) -> Record | None:
        if record is None:
            return None
        name = names[record.key]
        return Record(name, name + record.content.removeprefix(record.key))

    def keys(listed: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if listed is None else tuple(sorted(names[key] for key in listed))

    pairs = [renamed(Record(*pair)) for pair in state.data]
    collector = state.collector
    return State(
        data=tuple(sorted((pair.key, pair.content) for pair in pairs if pair is not None)),
        records=(renamed(state.records[0]), renamed(state.records[1])),
        decision=state.decision,
        seals=(renamed(state.seals[0]), renamed(state.seals[1])),
        attempts=tuple(
            attempt._replace(
                name=names[attempt.name], phase="ended" if attempt.phase in ENDED else attempt.phase
            )
            for attempt in order
        ),
        collector=Collector(keys(collector.listed), collector.uncertain, keys(collector.doomed)),
    )


def _signature(state: State, attempt: Attempt) -> tuple[object, ...]:
    """All that a state says of an attempt but its name."""
    collector = state.collector
    named = [record is not None and record.key == attempt.name for record in state.records]
    return (
        attempt.revision,
        "ended" if attempt.phase in ENDED else attempt.phase,
        attempt.decision,
        attempt.name in state.contents(),
        *named,
        attempt.name in (collector.listed or ()),
        attempt.name in (collector.doomed or ()),
    )


def placed(
    pair: tuple[Record | None, Record | None], revision: int, value: Record
) -> tuple[Record | None, Record | None]:
    """With the value of one revision set."""
    return (value, pair[1]) if revision == 0 else (pair[0], value)
