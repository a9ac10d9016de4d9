"""Draft-free trajectories as JSON files: identity is compared with them, oracles replay them."""

import json
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from spot.trajectory import Commit, Move
from workers.samples import SampleResult


class Trace(NamedTuple):
    """One sample's commits in order."""

    positions: tuple[int, ...]
    tokens: tuple[int, ...]
    steps: tuple[int, ...]


def trace_of(result: SampleResult) -> Trace:
    """The trajectory of a traced sample."""
    assert result.trace is not None, "the engine keeps traces"
    return Trace(result.trace.positions, result.trace.tokens, result.trace.steps)


def write_traces(traces: list[Trace], path: Path) -> None:
    """Write them."""
    path.write_text(json.dumps(traces), encoding="utf-8")


def read_traces(path: Path) -> list[Trace]:
    """Read them."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return [Trace(*(tuple(column) for column in trace)) for trace in found]


def moves_of(trace: Trace) -> list[Move]:
    """The transitions; confidences are not kept and are zero."""
    commits = zip(trace.steps, trace.positions, trace.tokens, strict=True)
    return [
        tuple(Commit(position, token, 0.0, 0.0) for _, position, token in together)
        for _, together in groupby(commits, key=lambda commit: commit[0])
    ]
