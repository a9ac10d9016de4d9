"""Prefixes in the batched engine: prompts share pages, few pages only slow it down."""

import numpy as np
import pytest
from torch import Tensor

import workers.engine
import workers.rounds
from spot.attention import KVPages
from spot.targets.base import Unit
from spot.targets.paged import PagedTarget
from tests.workers.engines import (
    GREEDY,
    SAMPLED,
    L,
    assert_equal,
    decode,
    finish,
    make_engine,
    make_requests,
    reference,
)
from workers.budget import FixedBudget
from workers.engine import Engine
from workers.samples import SampleRequest


def test_all_pages_are_given_back(target: PagedTarget) -> None:
    engine = make_engine(target, budget=FixedBudget(8))
    decode(engine, make_requests(samples=2))
    engine.check()
    assert engine.num_active == engine.num_waiting == 0


def test_samples_share_the_pages_of_their_prompt(target: PagedTarget) -> None:
    engine = make_engine(target, rule=SAMPLED)
    results = decode(engine, [r for r in make_requests(samples=3) if r.row == 4])
    assert engine.counters()["page_hits"] >= 2 * 3
    assert sorted(r.nfe_prefill for r in results.values()) == [0, 0, 1]


def test_few_pages_only_slow_the_batch_down(target: PagedTarget) -> None:
    requests = make_requests(samples=2)
    engine = make_engine(target, batch=8, num_pages=7, budget=FixedBudget(8))
    results = decode(engine, requests)
    for request in requests:
        assert_equal(results[request.row, request.sample], reference(target, request, GREEDY))


def test_a_sample_that_never_fits_is_refused(target: PagedTarget) -> None:
    with pytest.raises(ValueError, match="more prefix pages than there are"):
        make_engine(target, num_pages=4).add(make_requests()[4])


def test_a_long_prompt_enters_in_several_rounds(
    target: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.rounds, "MAX_WRITES", 1)
    request = make_requests()[4]
    result = decode(make_engine(target), [request])[4, 0]
    assert_equal(result, reference(target, request, GREEDY))
    assert result.nfe_prefill == 3


def test_pages_that_an_aborted_sample_owed_are_written_by_another(
    target: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.rounds, "MAX_WRITES", 1)
    first = make_requests()[4]
    second = SampleRequest(
        shard=1, row=9, sample=0, prompt_ids=first.prompt_ids, key=7, max_tokens=14
    )
    engine = make_engine(target)
    engine.add(first)
    engine.add(second)
    engine.step()
    engine.abort(first.shard)
    engine.check()
    assert_equal(finish(engine)[9, 0], reference(target, second, GREEDY))


def prefilled(engine: Engine, target: PagedTarget, requests: list[SampleRequest]) -> int:
    """Positions of prompts that were computed."""
    blocks, run = [0], target.hidden

    def counting(units: list[Unit], pages: KVPages) -> Tensor:
        header = len(requests[0].prompt_ids) // L * L
        blocks[0] += sum(u.write >= 0 and u.start < header for u in units)
        return run(units, pages)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "hidden", counting)
        decode(engine, requests)
    return blocks[0] * L


def test_copies_of_a_prompt_and_prompts_with_one_header_are_prefilled_once(
    target: PagedTarget,
) -> None:
    rng = np.random.default_rng(3)
    header = tuple(int(i) for i in rng.integers(0, 256, 512))
    tails = [tuple(int(i) for i in rng.integers(0, 256, 12)) for _ in range(3)]

    def requests(num_rows: int, samples: int) -> list[SampleRequest]:
        return [
            SampleRequest(
                shard=0,
                row=row,
                sample=sample,
                prompt_ids=header + tails[row],
                key=100 * row + sample,
                max_tokens=2,
            )
            for row in range(num_rows)
            for sample in range(samples)
        ]

    def engine() -> Engine:
        return make_engine(target, rule=SAMPLED, batch=24, num_pages=600, budget=FixedBudget(2))

    one = prefilled(engine(), target, requests(1, 1))
    assert one == 512 + L
    assert prefilled(engine(), target, requests(1, 8)) == one
    assert prefilled(engine(), target, requests(3, 8)) <= 1.1 * one


def test_a_long_prompt_that_enters_does_not_hold_the_others_up(
    target: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = make_requests()[0], make_requests()[4]

    def rounds(requests: list[SampleRequest]) -> int:
        engine = make_engine(target)
        engine.add(requests[0])
        engine.step()
        for request in requests[1:]:
            engine.add(request)
        num = 1
        while not any(r.request.row == short.row for r in engine.step()):
            num += 1
        return num

    alone = rounds([short])
    monkeypatch.setattr(workers.rounds, "MAX_WRITES", 1)
    assert rounds([short, long]) == alone
