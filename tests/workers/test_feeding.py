"""Rows enter all at once, or one at a time and announced."""

from dataclasses import replace

import pytest

from manifests.errors import UnknownOutcomeError
from tests.manifests.builders import StoredJob
from tests.workers.builders import empty_assembly, full_assembly
from workers.feeding import AllRows, RowByRow
from workers.shard_assembly import ShardAssembly


def test_all_rows_enter_once(job: StoredJob) -> None:
    feed, assembly = AllRows(), empty_assembly(job)
    assert not feed.is_exhausted(assembly)
    assert list(feed.due(assembly)) == job.rows[0]
    assert list(feed.due(assembly)) == []
    assert feed.is_exhausted(assembly)


def test_a_row_enters_when_the_one_before_it_has_ended(job: StoredJob) -> None:
    announced: list[int] = []
    feed, assembly = RowByRow(announced.append), empty_assembly(job)
    samples = full_assembly(job).in_order()
    entered = []
    for sample in samples:
        entered.append([row.id for row in feed.due(assembly)])
        assembly.add(sample)
    assert entered == [["id-0"], [], ["id-1"], [], ["id-2"], []]
    assert announced == [0, 1, 2]
    assert feed.is_exhausted(assembly)
    assert feed.due(assembly) == ()


def test_a_row_with_an_error_from_before_needs_no_announcement(job: StoredJob) -> None:
    announced: list[int] = []
    rows = [replace(job.rows[0][0], prompt=None, error_class="PoisonRow"), *job.rows[0][1:]]
    feed, assembly = RowByRow(announced.append), empty_assembly(job, rows=rows)
    assert list(feed.due(assembly)) == rows[:1]
    assert announced == []


def test_a_row_that_cannot_be_announced_does_not_enter(job: StoredJob) -> None:
    def announce(row: int) -> None:
        raise UnknownOutcomeError("no answer")

    feed, assembly = RowByRow(announce), empty_assembly(job)
    for _ in range(2):
        with pytest.raises(UnknownOutcomeError):
            feed.due(assembly)
    assert not feed.is_exhausted(assembly)


def test_rows_are_announced_by_their_index_in_the_shard(job: StoredJob) -> None:
    announced: list[int] = []
    assembly = ShardAssembly(shard=job.plan.shards[1], attempt="a", rows=job.rows[1], num_samples=2)
    RowByRow(announced.append).due(assembly)
    assert announced == [0]
