"""What a collect job has committed, as trajectories to train and measure drafters on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.errors import JobError, NoJobError
from jobs.inputs.files import input_name
from jobs.reading import OpenJob, open_job, read_committed
from manifests.columns import TRAJECTORY_COLUMNS
from manifests.committed import committed_rows
from manifests.errors import DamagedError

if TYPE_CHECKING:
    from spot.training.trajectories import Trajectories

_COLUMNS = ("shard", "row", "id", "error_class", *TRAJECTORY_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What a collect job has committed, and what it is about."""

    target: str
    data: str
    rule: str
    """The transition rule that made the trajectories."""
    trajectories: "Trajectories"
    """Samples are numbered by input row, so that those of one prompt stay together."""

    @property
    def block_length(self) -> int:
        """L."""
        return int(self.trajectories.when.shape[1])

    def split(self) -> "tuple[Trajectories, Trajectories]":
        """Training and held-out states.

        Raises:
            JobError: one of the two has no state with stale conditionals.
        """
        from spot.training.train import HELD_OUT_EVERY, split

        parts = split(self.trajectories)
        if not all(len(part.roots()) for part in parts):
            num_rows = len(set(self.trajectories.sample.tolist()))
            raise JobError(
                f"{self.data} gave trajectories of {num_rows} rows, too few to train on some and "
                f"hold every {HELD_OUT_EVERY}th row out: collect more rows"
            )
        return parts


def collection(data: Path) -> Collection:
    """The trajectories that the collect job in a directory has committed so far.

    Raises:
        JobError: there are none in it.
        DamagedError: what is stored is not what was committed.
    """
    from spot.training.trajectories import Trajectories

    job = _collect_job(data)
    parts = list(_samples(job))
    if not parts:
        raise _nothing(data)
    spec = job.plan.job
    return Collection(
        target=Path(spec.target.path).name,
        data=input_name(spec.input),
        rule=spec.decode.rule,
        trajectories=Trajectories.concatenate(parts),
    )


def collections(directories: Sequence[Path]) -> Collection:
    """The trajectories of several collect jobs as one; rows of different jobs stay apart.

    Raises:
        JobError: as of ``collection``, or the jobs are not alike enough to be joined.
    """
    from spot.training.trajectories import Trajectories

    found = [collection(path) for path in directories]
    first = found[0]
    for path, other in zip(directories, found, strict=True):
        if (other.target, other.rule, other.block_length) != (
            first.target,
            first.rule,
            first.block_length,
        ):
            raise JobError(
                f"{path} and {directories[0]} differ in target, rule or block length: train on "
                "collections that agree"
            )
    shift, parts = 0, []
    for one in found:
        parts.append(replace(one.trajectories, sample=one.trajectories.sample + shift))
        shift += int(one.trajectories.sample.max()) + 1
    return Collection(
        target=first.target,
        data=", ".join(one.data for one in found),
        rule=first.rule,
        trajectories=Trajectories.concatenate(parts),
    )


def _collect_job(data: Path) -> OpenJob:
    try:
        job = open_job(str(data))
    except NoJobError:
        raise _nothing(data) from None
    if job.plan.job.work != "collect":
        raise _nothing(data)
    return job


def _nothing(data: Path) -> JobError:
    return JobError(f"{data} holds no trajectories: make them with `spotbatch drafter collect`")


def _samples(job: OpenJob) -> "Iterator[Trajectories]":
    """Every sample that is no error, rows in input order."""
    from workers.collection import from_columns

    committed = read_committed(job)
    for table in committed_rows(job.store, job.plan, committed.records, columns=_COLUMNS):
        for row in table.to_pylist():
            if row["error_class"] is not None:
                continue
            number = job.plan.shards[row["shard"]].first_row + row["row"]
            try:
                yield from_columns(row).numbered(number)
            except ValueError as error:
                raise DamagedError(
                    f"{job.store.uri}: the trajectory of row {row['id']} cannot be read ({error}); "
                    "collect into another directory"
                ) from None
