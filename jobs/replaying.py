"""Decoding committed samples again with the draft-free reference decoder, and comparing.

Which samples is chosen by a seed among those that are no errors. A replay makes the row that a
worker would commit if it drafted nothing; the two must agree token by token, in what they cost
without drafts, and - as far as the trace tells - commit by commit.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jobs.errors import JobError
from jobs.reading import Committed, OpenJob
from manifests.committed import committed_rows
from manifests.job import JobSpec
from manifests.plan import ShardPlan
from manifests.staged import StagedRow, read_shard
from workers.errors import RowError
from workers.samples import CommitTrace, FinishReason


class Replayer(Protocol):
    """A loaded target with the reference decoder."""

    def replay(
        self, shard: ShardPlan, *, row_index: int, row: StagedRow, sample: int
    ) -> tuple[tuple[int, ...], FinishReason, CommitTrace]:
        """Decode one sample of a row without drafts; `row_index` is the row's in its shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first place in which a committed sample and its replay differ."""

    data_key: str
    id: str
    sample: int
    what: str

    def __str__(self) -> str:
        return f"{self.data_key}: row {self.id}, sample {self.sample}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """What came of it."""

    replayed: int
    differences: tuple[Difference, ...]


ReplayerOf = Callable[[int], Replayer]
"""The decoder of the rows that a revision decoded, under that revision's settings."""


def replay_samples(
    job: OpenJob, committed: Committed, *, count: int, seed: int, replayer_of: ReplayerOf
) -> Replays:
    """Replay `count` samples, or all if there are fewer; `JobError` if none can be compared."""
    require_draft_free(job.plan.job)
    differences: list[Difference] = []
    replayed = 0
    revision_of = {record.attempt: record.revision for record in committed.all_records}
    for shard, rows in _chosen(job, committed, count=count, seed=seed):
        staged = read_shard(job.store, job.plan, shard.shard)
        for row in rows:
            replayed += 1
            replayer = replayer_of(revision_of.get(row["attempt"], 0))
            what = _replay(replayer, row, shard=shard, staged=staged)
            if what is not None:
                key = committed.records[shard.shard].data_key
                differences.append(
                    Difference(data_key=key, id=row["id"], sample=row["sample"], what=what)
                )
    return Replays(replayed=replayed, differences=tuple(differences))


def require_draft_free(job: JobSpec) -> None:
    """Raise `JobError` where draft-free decoding does not define the output."""
    verifier = job.decode.verifier
    if verifier in ("greedy", "rejection"):
        raise JobError(
            f"the job was decoded with decode.verifier {verifier}, so there is no draft-free "
            "output to compare with; replay jobs with decode.verifier coupled or uncoupled"
        )


def _chosen(
    job: OpenJob, committed: Committed, *, count: int, seed: int
) -> Iterator[tuple[ShardPlan, list[dict[str, Any]]]]:
    """The chosen rows of each shard, as committed."""
    num_ok = sum(record.ok for record in committed.records.values())
    chosen = set(random.Random(seed).sample(range(num_ok), min(count, num_ok)))  # noqa: S311
    start = 0
    for number in sorted(committed.records):
        record = committed.records[number]
        places = sorted(i - start for i in chosen if start <= i < start + record.ok)
        start += record.ok
        if places:
            yield job.plan.shards[number], _ok_rows(job, committed, number, places)


def _ok_rows(
    job: OpenJob, committed: Committed, shard: int, places: Sequence[int]
) -> list[dict[str, Any]]:
    """The rows at `places`, counted among the shard's rows that are no errors."""
    records = {shard: committed.records[shard]}
    (table,) = committed_rows(job.store, job.plan, records)
    ok = table.filter(table["error_class"].is_null())
    rows: list[dict[str, Any]] = ok.take(places).to_pylist()
    return rows


def _replay(
    replayer: Replayer, row: dict[str, Any], *, shard: ShardPlan, staged: Sequence[StagedRow]
) -> str | None:
    index, sample = row["row"], row["sample"]
    try:
        again = replayer.replay(shard, row_index=index, row=staged[index], sample=sample)
    except RowError as error:
        return f"the replay ends in {error.error_class}: {error.message}"
    token_ids, finish_reason, trace = again
    return first_difference(row, token_ids=token_ids, finish_reason=finish_reason, trace=trace)


def first_difference(
    row: dict[str, Any],
    *,
    token_ids: Sequence[int],
    finish_reason: FinishReason,
    trace: CommitTrace,
) -> str | None:
    """The first difference between a committed row and its replay, as a sentence; or None."""
    return (
        _list_difference("token", row["token_ids"], token_ids)
        or _commit_difference(row, num_tokens=len(token_ids), trace=trace)
        or _value_difference("finish_reason", row["finish_reason"], finish_reason)
        or _value_difference("transitions", row["transitions"], trace.num_transitions)
    )


def _commit_difference(row: dict[str, Any], *, num_tokens: int, trace: CommitTrace) -> str | None:
    """As far as the job's `output.trace` tells: the order of commits, or the steps of tokens."""
    if row.get("commit_position") is not None:
        names = ("commit_position", "commit_token", "commit_transition")
        committed = list(zip(*(row[name] for name in names), strict=True))
        again = list(zip(trace.positions, trace.tokens, trace.steps, strict=True))
        difference = _list_difference("commit (position, token, transition)", committed, again)
        if difference is not None:
            return difference
    if row.get("commit_step") is None or not trace.positions:
        return None
    # A trajectory is complete up to the last output token, so it begins where the prompt ends.
    steps = trace.of_tokens(min(trace.positions), num_tokens).steps
    return _list_difference("commit step of token", row["commit_step"], steps)


def _list_difference(name: str, committed: Sequence[Any], again: Sequence[Any]) -> str | None:
    for place, (one, other) in enumerate(zip(committed, again, strict=False)):
        if one != other:
            return f"{name} {place} is {one}, replayed {other}"
    if len(committed) != len(again):
        return f"{name} {min(len(committed), len(again))} is on one side only: " + (
            f"{len(committed)} are committed, {len(again)} replayed"
        )
    return None


def _value_difference(name: str, committed: Any, again: Any) -> str | None:
    return None if committed == again else f"{name} is {committed}, replayed {again}"
