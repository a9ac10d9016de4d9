"""Collecting trajectories for drafter training: draft-free decoding under a recording observer.

Without drafts every walk makes exactly one transition, so that the engine shows each state that a
sample goes through, with the state's own conditionals.

Legend: B blocks, L block length, M visited states.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifests.job import JobSpec
from manifests.plan import Plan, ShardPlan
from manifests.staged import StagedRow
from spot.drafters.base import Stale
from spot.training.trajectories import NEVER, PROMPT, SampleTrajectory
from spot.verification import Walk
from workers.rounds import Entry
from workers.runtime import load_runtime
from workers.samples import OutputSample
from workers.work import GenerateWork, Runtime

PREFIX = "trajectory_"


class Name(NamedTuple):
    """What names a sample in a job."""

    shard: int
    row: int
    sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A state that a sample went through, and where it went on."""

    start: int  # absolute position of its block
    step: int  # transitions made in the block before
    fresh: Stale  # the state's own conditionals
    positions: tuple[int, ...]  # absolute, of the next transition's commits


class Recorder:
    """Remembers every state of every sample; the observer of a draft-free engine."""

    def __init__(self) -> None:
        self._visits: dict[Name, list[Visit]] = defaultdict(list)

    def walked(self, entry: Entry, made: Walk, fresh: Stale) -> None:
        """Keep the root of a walk."""
        assert len(made.moves) == 1, "something was drafted"
        sequence = entry.sequence
        request = sequence.request
        visit = Visit(
            start=sequence.start,
            step=sequence.step,
            fresh=fresh,
            positions=tuple(commit.position for commit in made.moves[0]),
        )
        self._visits[Name(request.shard, request.row, request.sample)].append(visit)

    def take(self, name: Name) -> SampleTrajectory:
        """A finished sample's trajectory; forgets it."""
        return trajectory_of(self._visits.pop(name))


def trajectory_of(visits: Sequence[Visit]) -> SampleTrajectory:
    """The visits of one sample, in order, as arrays."""
    starts = list(dict.fromkeys(visit.start for visit in visits))
    index_of = {start: index for index, start in enumerate(starts)}
    return SampleTrajectory(
        start=np.array(starts, np.int64),
        when=_when(visits, index_of),
        block=np.array([index_of[visit.start] for visit in visits], np.int32),
        step=np.array([visit.step for visit in visits], np.int32),
        log_probs=np.stack([visit.fresh.log_probs for visit in visits]),
        doubts=np.stack([visit.fresh.doubts for visit in visits]),
    )


def _when(visits: Sequence[Visit], index_of: Mapping[int, int]) -> NDArray[np.int16]:
    """Each position's transition, [B, L]."""
    when = np.full((len(index_of), len(visits[0].fresh.masked)), PROMPT, np.int16)
    for visit in visits:
        row = when[index_of[visit.start]]
        if visit.step == 0:
            row[visit.fresh.masked] = NEVER
        row[np.array(visit.positions) - visit.start] = visit.step
    return when


def to_columns(trajectory: SampleTrajectory) -> dict[str, int | bytes]:
    """What an output row keeps of a trajectory, by column."""
    arrays = {PREFIX + name: array for name, array in trajectory.to_bytes().items()}
    return {f"{PREFIX}states": len(trajectory.step), **arrays}


def from_columns(row: Mapping[str, Any]) -> SampleTrajectory:
    """The trajectory of an output row that is no error.

    Raises:
        ValueError: its arrays do not fit together.
    """
    trajectory = SampleTrajectory.from_bytes(
        {name.removeprefix(PREFIX): value for name, value in row.items()}
    )
    if len(trajectory.step) != row[f"{PREFIX}states"]:
        raise ValueError("the number of states is not that of its steps")
    return trajectory


class CollectWork:
    """Decode rows without drafts, and hand each sample's trajectory out with it."""

    def __init__(self, plan: Plan, *, runtime: Runtime, recorder: Recorder) -> None:
        self._work = GenerateWork(plan, runtime=runtime)
        self._recorder = recorder

    @property
    def dtype(self) -> str | None:
        """What the target computes in."""
        return self._work.dtype

    def admit(self, shard: ShardPlan, rows: Sequence[StagedRow]) -> list[OutputSample]:
        """Queue the rows' samples; rows in trouble come back as errors."""
        return self._work.admit(shard, rows)

    def step(self) -> list[OutputSample]:
        """One round of the engine."""
        return [self._with_trajectory(output) for output in self._work.step()]

    def _with_trajectory(self, output: OutputSample) -> OutputSample:
        trajectory = self._recorder.take(Name(output.shard, output.row, output.sample))
        if output.error_class is not None:
            return output
        return replace(output, trajectory=to_columns(trajectory))

    def has_work(self) -> bool:
        """Whether the engine holds a sample."""
        return self._work.has_work()

    def counters(self) -> dict[str, int]:
        """The engine's."""
        return self._work.counters()


def load_collecting(plan: Plan, *, job: JobSpec) -> CollectWork:
    """Load the target; whatever drafter the job names, nothing is drafted (`JobSpec.drafts`)."""
    recorder = Recorder()
    runtime = load_runtime(job, observer=recorder)
    return CollectWork(plan, runtime=runtime, recorder=recorder)
