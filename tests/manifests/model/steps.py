"""Every step that a process of the model can make next."""

from collections.abc import Iterator
from typing import NamedTuple

from tests.manifests.model.states import (
    ENDED,
    Attempt,
    Collector,
    Record,
    State,
    Variant,
    placed,
    with_attempt,
    with_data,
)

DECISIONS = ("x", "y")


class Step(NamedTuple):
    """What happens, and where it leads."""

    label: str
    state: State


def steps(state: State, variant: Variant) -> Iterator[Step]:
    """All next steps: attempts, the people who decide, whoever seals, and the collection."""
    for index, attempt in enumerate(state.attempts):
        if attempt.phase not in ENDED:
            for step in _attempt_steps(state, index, variant):
                yield Step(f"{attempt.name} {step.label}", step.state)
            if attempt.phase != "idle":
                yield Step(f"{attempt.name} dies", with_attempt(state, index, phase="ended"))
    yield from _decide(state, variant)
    yield from _seal(state, variant)
    if variant.collection != "none":
        yield from _collect(state, variant)


def key_of(attempt: Attempt, variant: Variant) -> str:
    """The name of an attempt's data."""
    if variant.shared_name:
        return "data"
    return f"r{attempt.revision}" if variant.attempt_of_arguments else attempt.name


def record_of(attempt: Attempt, variant: Variant) -> Record:
    """What an attempt would commit; no two executions generate the same content."""
    return Record(key_of(attempt, variant), f"{attempt.name}{attempt.decision}")


def _slot(attempt: Attempt, variant: Variant) -> int:
    return 0 if variant.record_in_place else attempt.revision


def _attempt_steps(state: State, index: int, variant: Variant) -> Iterator[Step]:
    attempt = state.attempts[index]
    match attempt.phase:
        case "idle":
            yield from _begin(state, index, variant)
        case "copy":
            yield _copy(state, index, variant)
        case "data":
            yield from _put_data(state, index, variant)
        case "check":
            there = state.records[_slot(attempt, variant)] is not None
            phase = "read" if there else "record"
            yield Step("checks", with_attempt(state, index, phase=phase))
        case "record":
            yield from _put_record(state, index, variant)
        case "read":
            yield _read(state, index, variant)
        case "delete":
            gone = with_data(state, key_of(attempt, variant), None)
            yield Step("deletes its data", with_attempt(gone, index, phase="ended"))


def _begin(state: State, index: int, variant: Variant) -> Iterator[Step]:
    attempt = state.attempts[index]
    if attempt.revision == 0:
        first = "record" if variant.record_first else "data"
        yield Step("begins", with_attempt(state, index, phase=first))
    elif state.decision is not None:
        read = with_attempt(state, index, phase="copy", decision=state.decision)
        yield Step("begins", read)


def _copy(state: State, index: int, variant: Variant) -> Step:
    """A revised file holds rows of the file that its parent seal names."""
    parent = state.seals[0]
    assert parent is not None, "a decision goes out from a seal"
    there = state.contents().get(parent.key) == parent.content
    return Step("copies", with_attempt(state, index, phase="data" if there else "ended"))


def _put_data(state: State, index: int, variant: Variant) -> Iterator[Step]:
    attempt = state.attempts[index]
    key, content = record_of(attempt, variant)
    there = state.contents().get(key)
    then = "check" if variant.check_then_put else "record"
    then = "committed" if variant.record_first else then
    if there is None or variant.shared_name:
        put = with_data(state, key, content)
        yield Step("puts data", with_attempt(put, index, phase=then))
        yield Step("puts data, reply lost", put)
    elif there == content or variant.attempt_of_arguments:
        # With an id of its own it can only be its own; with a shared id it believes so.
        yield Step("finds its data", with_attempt(state, index, phase=then))


def _put_record(state: State, index: int, variant: Variant) -> Iterator[Step]:
    attempt = state.attempts[index]
    slot, record = _slot(attempt, variant), record_of(attempt, variant)
    replaces = variant.check_then_put or (variant.record_in_place and attempt.revision == 1)
    after = "data" if variant.record_first else "committed"
    unknown = "delete" if variant.unknown_is_failure else "record"
    if state.records[slot] is None or replaces:
        put = state._replace(records=placed(state.records, slot, record))
        yield Step("puts its record", with_attempt(put, index, phase=after))
        yield Step("puts its record, reply lost", with_attempt(put, index, phase=unknown))
    else:
        yield Step("is refused", with_attempt(state, index, phase="read"))
    if variant.unknown_is_failure:
        yield Step("record request lost", with_attempt(state, index, phase=unknown))


def _read(state: State, index: int, variant: Variant) -> Step:
    attempt = state.attempts[index]
    record = state.records[_slot(attempt, variant)]
    assert record is not None, "it was refused, and records are never deleted"
    if record.key == key_of(attempt, variant):
        return Step("finds its record", with_attempt(state, index, phase="committed"))
    return Step("finds another's record", with_attempt(state, index, phase="delete"))


def _decide(state: State, variant: Variant) -> Iterator[Step]:
    """Two people decide differently; the one who comes second goes by what is there."""
    if state.seals[0] is not None and (state.decision is None or variant.decision_replaced):
        for decision in DECISIONS:
            yield Step(f"decision {decision}", state._replace(decision=decision))


def _seal(state: State, variant: Variant) -> Iterator[Step]:
    revision = state.open_revision
    if revision is None:
        return
    if variant.seal_of_listing and state.data:
        sealed = Record(*state.data[0])
    else:
        record = state.records[0 if variant.record_in_place else revision]
        if record is None:
            return
        sealed = record
    yield Step("seal", state._replace(seals=placed(state.seals, revision, sealed)))


def _collect(state: State, variant: Variant) -> Iterator[Step]:
    """One request of a pass; a pass may die anywhere and begin again."""
    now = state.collector
    if now != Collector():
        yield Step("collection dies", state._replace(collector=Collector()))
    if now.doomed is not None:
        left = with_data(state, now.doomed[0], None)
        rest = Collector(doomed=now.doomed[1:])
        done = len(now.doomed) == 1
        yield Step(
            f"{now.doomed[0]} deleted", left._replace(collector=Collector() if done else rest)
        )
    else:
        yield from _look(state, variant)


def _look(state: State, variant: Variant) -> Iterator[Step]:
    now = state.collector
    keys = tuple(key for key, _ in state.data)
    looks_first = variant.collection == "revision first"
    if now.uncertain is None and (now.listed is not None or looks_first):
        opened = state.open_revision is not None
        yield Step("collection looks", state._replace(collector=now._replace(uncertain=opened)))
    elif now.listed is None:
        yield Step("collection lists", state._replace(collector=now._replace(listed=keys)))
    else:
        doomed = tuple(key for key in now.listed if key not in _kept(state, variant))
        collector = Collector(doomed=doomed or None)
        yield Step("collection reads seals", state._replace(collector=collector))


def _kept(state: State, variant: Variant) -> set[str]:
    """Names that this pass leaves alone."""
    now = state.collector
    assert now.listed is not None
    records = [record.key for record in state.records if record is not None]
    seals = [seal.key for seal in state.seals if seal is not None]
    match variant.collection:
        case "recorded":
            opened = state.open_revision
            decided = opened is None or state.records[opened] is not None
            return set(records) if decided else set(now.listed)
        case "unreferenced":
            return set(records)
        case "first record":
            return set(records) if state.records[0] is not None else set(now.listed)
        case "superseded":
            return set(now.listed) if now.uncertain else set(seals[-1:])
        case _:
            return set(now.listed) if now.uncertain else set(seals)
