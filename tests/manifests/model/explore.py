"""Looking at every reachable state of the model, and what must hold in each."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tests.manifests.model.states import ENDED, Record, State, Variant, plain
from tests.manifests.model.steps import record_of, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What was looked at, and the first thing found wrong."""

    num_states: int
    violation: str | None = None
    trace: tuple[str, ...] = ()
    """The steps that lead to it; none is superfluous, since the search is in order of length."""


def explore(initial: State, variant: Variant, *, alike: bool = False) -> Exploration:
    """Breadth first; stops at the first violation.

    `alike`: states that differ by names of attempts only are looked at once (`states.plain`).
    """
    came_from: dict[State, tuple[State, str] | None] = {initial: None}
    waiting, seen = deque([initial]), {initial}
    while waiting:
        state = waiting.popleft()
        for step in steps(state, variant):
            violation = _changed(state, step.state)
            is_new = step.state not in seen
            seen.add(step.state)
            violation = violation or (_wrong(step.state, variant) if is_new else None)
            if violation is not None:
                trace = (*_trace(came_from, state), step.label)
                return Exploration(num_states=len(came_from), violation=violation, trace=trace)
            reached = plain(step.state) if alike and is_new else step.state
            if is_new and reached not in came_from:
                came_from[reached] = (state, step.label)
                waiting.append(reached)
    return Exploration(num_states=len(came_from))


def _trace(came_from: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    labels: list[str] = []
    while (origin := came_from[state]) is not None:
        state, label = origin
        labels.append(label)
    return tuple(reversed(labels))


def _changed(before: State, after: State) -> str | None:
    """Documents are created once: none changes, none goes."""
    for name in ("records", "seals"):
        for old, new in zip(getattr(before, name), getattr(after, name), strict=True):
            if old is not None and old != new:
                return f"one of the {name} was changed"
    if before.decision is not None and before.decision != after.decision:
        return "the decision was changed"
    return None


def _wrong(state: State, variant: Variant) -> str | None:
    return next(_violations(state, variant), None)


def _violations(state: State, variant: Variant) -> Iterator[str]:
    for record in _counting(state, variant):
        if state.contents().get(record.key) != record.content:
            yield "what counts points at nothing, or at other bytes"
    for revision, seal in enumerate(state.seals):
        if seal is not None and seal != state.records[revision]:
            yield "a seal names what no record names"
    for attempt in state.attempts:
        mine = record_of(attempt, variant)
        if attempt.phase == "committed" and mine not in state.records:
            yield "an attempt believes that it has committed"
        if state.records[1] == mine and attempt.decision != state.decision:
            yield "a record was made under another decision"
    if not _can_be_finished(state, variant):
        yield "the job cannot be finished"


def _counting(state: State, variant: Variant) -> list[Record]:
    """Records and seals whose data has to be there: all, unless superseded files may go."""
    named = [*state.records, *state.seals]
    if variant.collection == "superseded" and state.seals[1] is not None:
        named = [state.records[1], state.seals[1]]
    return [record for record in named if record is not None]


def _can_be_finished(state: State, variant: Variant) -> bool:
    """An open revision has a record, an attempt under way, or can take a new one."""
    revision = state.open_revision
    if revision is None or state.records[revision] is not None:
        return True
    if any(a.phase not in ENDED for a in state.attempts if a.revision == revision):
        return True
    parent = state.seals[0]
    return revision == 0 or (
        parent is not None and state.contents().get(parent.key) == parent.content
    )
