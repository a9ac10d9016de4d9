"""What becomes of rows: samples with their keys, and error rows where a row is in trouble."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.hashing import hash64
from manifests.plan import sample_key
from tests.manifests.builders import StoredJob, make_job
from tests.workers.builders import drain_work, with_prompt
from tests.workers.fakes import PROMPT_IDS, FakeRuntime, result_of
from workers.samples import SampleRequest
from workers.work import GenerateWork, NullWork, Work, decoded_output, open_work


@pytest.fixture(params=["generate", "null"])
def work(request: pytest.FixtureRequest, job: StoredJob) -> Work:
    """Each kind of work."""
    if request.param == "null":
        return NullWork(job.plan)
    return GenerateWork(job.plan, runtime=FakeRuntime())


def test_every_row_gives_its_samples_with_the_planned_keys(work: Work, job: StoredJob) -> None:
    samples = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()
    assert [sample.key for sample in samples] == [
        sample_key(job.plan, job.plan.shards[0], row, job.rows[0][row], sample)
        for row in range(3)
        for sample in range(2)
    ]


def test_trouble_found_by_planning_becomes_error_rows_for_every_sample(
    work: Work, job: StoredJob
) -> None:
    samples = drain_work(work, job, shard=1, rows=job.rows[1]).in_order()
    assert [(s.row, s.sample, s.error_class, s.error_message) for s in samples[2:]] == [
        (1, 0, "EmptyPrompt", "no prompt"),
        (1, 1, "EmptyPrompt", "no prompt"),
    ]
    assert samples[0].error_class is None


def test_requests_carry_prompt_key_and_budget(job: StoredJob) -> None:
    runtime = FakeRuntime()
    GenerateWork(job.plan, runtime=runtime).admit(job.plan.shards[0], job.rows[0][:1])
    key = sample_key(job.plan, job.plan.shards[0], 0, job.rows[0][0], 0)
    assert runtime.engine.requests[0] == SampleRequest(
        shard=0, row=0, sample=0, prompt_ids=PROMPT_IDS, key=key, max_tokens=256
    )


def test_a_row_may_have_a_budget_of_its_own(job: StoredJob) -> None:
    runtime = FakeRuntime()
    rows = [replace(job.rows[0][0], max_tokens=9), job.rows[0][1], job.rows[0][2]]
    GenerateWork(job.plan, runtime=runtime).admit(job.plan.shards[0], rows)
    assert [r.max_tokens for r in runtime.engine.requests] == [9, 9, 256, 256, 256, 256]


def test_a_row_may_have_its_own_temperature_and_seed(job: StoredJob) -> None:
    rows = [replace(job.rows[0][0], temperature=0.5, seed=7), *job.rows[0][1:]]
    runtime = FakeRuntime()
    GenerateWork(job.plan, runtime=runtime).admit(job.plan.shards[0], rows)
    first, second, third = runtime.engine.requests[:3]
    assert (first.temperature, second.temperature, third.temperature) == (0.5, 0.5, None)
    assert [first.key, second.key] == [hash64("row", 7, "id-0", n) for n in (0, 1)]


def test_a_row_that_cannot_be_encoded_leaves_its_neighbours_alone(job: StoredJob) -> None:
    rows = with_prompt(job, "too long", row=1)
    work = GenerateWork(job.plan, runtime=FakeRuntime())
    samples = drain_work(work, job, shard=0, rows=rows).in_order()
    assert [s.error_class for s in samples] == [None] * 2 + ["PromptTooLong"] * 2 + [None] * 2


def test_an_unexpected_exception_for_a_row_stays_with_the_row(job: StoredJob) -> None:
    rows = with_prompt(job, "crash", row=0)
    work = GenerateWork(job.plan, runtime=FakeRuntime())
    samples = drain_work(work, job, shard=0, rows=rows).in_order()
    assert [s.error_class for s in samples] == ["KeyError"] * 2 + [None] * 4


class SurrogateRuntime(FakeRuntime):
    """Its texts cannot be stored."""

    def decode(self, token_ids: Sequence[int]) -> str:
        return "\ud800"


def test_a_sample_whose_text_cannot_be_stored_is_an_error(job: StoredJob) -> None:
    work = GenerateWork(job.plan, runtime=SurrogateRuntime())
    samples = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()
    assert {(s.error_class, s.text, s.num_tokens) for s in samples} == {
        ("UnicodeEncodeError", None, 0)
    }


def test_costs_and_traces_go_with_the_sample(job: StoredJob) -> None:
    runtime = FakeRuntime(traced=True)
    work = GenerateWork(job.plan, runtime=runtime)
    sample = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()[0]
    result = result_of(runtime.engine.requests[0], traced=True)
    assert (sample.nfe, sample.transitions, sample.positions) == (3, 4, 96)
    assert (sample.tokens_with_stop, sample.wall_s, sample.queue_s) == (3, 0.5, 0.25)
    assert sample.prompt_tokens == len(PROMPT_IDS)
    assert sample.trace == result.trace
    assert sample.token_trace is not None
    assert sample.token_trace.steps == (1, 0)


def test_transitions_settled_by_a_tie_break_go_with_the_sample() -> None:
    request = SampleRequest(shard=0, row=0, sample=0, prompt_ids=PROMPT_IDS, key=1, max_tokens=256)
    result = replace(result_of(request), tied=3)
    output = decoded_output(result, text="ab", token_ids=(1, 2), finish_reason="stop")
    assert output.tied == 3


def test_null_work_computes_nothing_and_claims_no_numerics(tmp_path: Path) -> None:
    job = make_job(tmp_path / "null", work="null")
    work = open_work(job.plan, job=job.plan.job)
    samples = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()
    assert {(s.text, s.token_ids, s.nfe) for s in samples} == {("", (), 0)}
    assert work.dtype is None
    assert work.counters() == {"null_rows": 3}
