"""A model of how rows become part of a job: staged files, and the one decision that names one.

Several people extend at once, each with rows of their own; one retries instead; replies get lost,
processes die between any two requests, and staged files are collected at any time.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The protocol, or one of its plausible mistakes."""

    shared_name: bool = False
    """Staged files are numbered, and one of other contents is replaced."""
    decision_first: bool = False
    """The decision is made before the file that it names is there."""
    collects_unnamed: bool = False
    """A staged file that no decision names is garbage, whatever is decided."""


Phase = Literal["stage", "decide", "done", "told", "dead"]


class Extender(NamedTuple):
    """One process, and the rows that it read."""

    rows: str
    phase: Phase


class State(NamedTuple):
    """Everything in storage and every process."""

    staged: tuple[tuple[str, str], ...]  # sorted pairs of key and rows
    decision: tuple[str, str] | None  # key and rows; empty texts for a retry
    extenders: tuple[Extender, ...]
    listed: tuple[str, ...] | None = None
    doomed: tuple[str, ...] = ()


class Exploration(NamedTuple):
    """What was looked at, and the first thing found wrong."""

    num_states: int
    violation: str | None = None


RETRY = ("", "")
DANGLING = "the decision names nothing, or other bytes"


def start(*rows: str, variant: Variant) -> State:
    """Nothing is staged; each extender has read these rows."""
    first: Phase = "decide" if variant.decision_first else "stage"
    return State((), None, tuple(Extender(read, first) for read in rows))


def explore(initial: State, variant: Variant) -> Exploration:
    """Breadth first; stops at the first violation."""
    seen, waiting = {initial}, deque([initial])
    while waiting:
        state = waiting.popleft()
        for after in _steps(state, variant):
            violation = _wrong(state, after)
            if violation is not None:
                return Exploration(len(seen), violation)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return Exploration(len(seen))


def _wrong(before: State, after: State) -> str | None:
    if before.decision is not None and before.decision != after.decision:
        return "the decision was changed"
    for extender in after.extenders:
        if extender.phase == "done" and (after.decision or RETRY)[1] != extender.rows:
            return "somebody believes that other rows were decided on"
    if after.decision is None or after.decision == RETRY:
        return None
    return None if after.decision in after.staged else DANGLING


def _steps(state: State, variant: Variant) -> Iterator[State]:
    for index, extender in enumerate(state.extenders):
        if extender.phase in ("stage", "decide"):
            yield _in_phase(state, index, "dead")
            yield from (_stage if extender.phase == "stage" else _decide)(state, index, variant)
    if state.decision is None:
        yield state._replace(decision=RETRY)
    yield from _collect(state, variant)


def _in_phase(state: State, index: int, phase: Phase) -> State:
    extenders = list(state.extenders)
    extenders[index] = extenders[index]._replace(phase=phase)
    return state._replace(extenders=tuple(extenders))


def _key(extender: Extender, variant: Variant) -> str:
    return "part" if variant.shared_name else f"part-{extender.rows}"


def _stage(state: State, index: int, variant: Variant) -> Iterator[State]:
    extender = state.extenders[index]
    key, staged = _key(extender, variant), dict(state.staged)
    after = _in_phase(state, index, "done" if variant.decision_first else "decide")
    if staged.get(key) == extender.rows:
        yield after
        return
    staged[key] = extender.rows  # under a name of its own contents there is nothing to replace
    put = tuple(sorted(staged.items()))
    yield after._replace(staged=put)
    yield state._replace(staged=put)  # the reply is lost


def _decide(state: State, index: int, variant: Variant) -> Iterator[State]:
    extender = state.extenders[index]
    mine = (_key(extender, variant), extender.rows)
    if state.decision is None:
        phase: Phase = "stage" if variant.decision_first else "done"
        yield _in_phase(state, index, phase)._replace(decision=mine)
        yield state._replace(decision=mine)  # the reply is lost
    else:
        yield _in_phase(state, index, "done" if state.decision == mine else "told")


def _collect(state: State, variant: Variant) -> Iterator[State]:
    """One request of a pass; a pass may die anywhere and begin again."""
    if state.doomed:
        left = tuple(pair for pair in state.staged if pair[0] != state.doomed[0])
        yield state._replace(staged=left, doomed=state.doomed[1:])
        yield state._replace(doomed=())
    elif state.listed is None:
        yield state._replace(listed=tuple(key for key, _ in state.staged))
    else:
        named = (state.decision or RETRY)[0]
        certain = state.decision is not None or variant.collects_unnamed
        doomed = tuple(key for key in state.listed if certain and key != named)
        yield state._replace(listed=None, doomed=doomed)
