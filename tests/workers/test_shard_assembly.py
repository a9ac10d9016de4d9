"""A shard's samples: all of them, once, in input order."""

import pytest

from tests.manifests.builders import StoredJob
from tests.workers.builders import empty_assembly, full_assembly
from workers.errors import AssemblyError
from workers.samples import OutputSample


def test_samples_come_out_in_input_order_whatever_the_order_of_arrival(job: StoredJob) -> None:
    assembly = empty_assembly(job)
    for sample in reversed(full_assembly(job).in_order()):
        assembly.add(sample)
    places = [(sample.row, sample.sample) for sample in assembly.in_order()]
    assert places == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_it_is_complete_with_rows_times_samples_and_not_before(job: StoredJob) -> None:
    *most, last = full_assembly(job).in_order()
    assembly = empty_assembly(job)
    for sample in most:
        assembly.add(sample)
    assert not assembly.is_complete
    assembly.add(last)
    assert assembly.is_complete


def test_an_incomplete_shard_is_not_handed_out(job: StoredJob) -> None:
    with pytest.raises(AssemblyError, match="shard 0 has 0 samples of 6"):
        empty_assembly(job).in_order()


def test_a_repeated_sample_is_an_error(job: StoredJob) -> None:
    assembly = full_assembly(job)
    with pytest.raises(AssemblyError, match="row 1, sample 0 twice"):
        assembly.add(assembly.in_order()[2])


@pytest.mark.parametrize(("shard", "row", "sample"), [(1, 0, 0), (0, 3, 0), (0, -1, 0), (0, 0, 2)])
def test_a_foreign_sample_is_an_error(job: StoredJob, shard: int, row: int, sample: int) -> None:
    foreign = OutputSample(shard=shard, row=row, sample=sample, key=1)
    with pytest.raises(AssemblyError, match="which it does not have"):
        empty_assembly(job).add(foreign)


def test_staged_rows_that_do_not_fit_the_plan_are_an_error(job: StoredJob) -> None:
    with pytest.raises(AssemblyError, match="2 staged rows, the plan says 3"):
        empty_assembly(job, rows=job.rows[0][:2])
