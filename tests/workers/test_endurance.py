"""Ten thousand short samples through one engine: memory stays flat, every page comes back."""

import numpy as np
import psutil
import pytest
import torch
from torch import Tensor

from spot.attention import KVPages
from spot.drafters.chain import ChainDrafter
from spot.limits import Limits
from spot.targets.base import Unit
from spot.targets.checkpoint import TargetSpec
from spot.transition import Rule
from workers.auto_budget import AutoBudget
from workers.costs import ForwardCost, LinearCost
from workers.draft_plan import Costs
from workers.engine import Engine, EngineSettings
from workers.samples import SampleRequest

L, MASK, VOCABULARY = 4, 7, 8
NUM_SAMPLES, EARLY, LATE = 10_000, 1_000, 9_000
BATCH, NUM_PAGES = 64, 800


class Steady:
    """Says the same of every block, in no time."""

    def __init__(self) -> None:
        self.spec = TargetSpec(
            family="steady",
            block_length=L,
            mask_id=MASK,
            stop_ids=(),
            pad_id=0,
            vocab_rows=VOCABULARY,
            max_positions=64,
        )
        self.banned = torch.arange(VOCABULARY) == MASK
        torch.manual_seed(0)
        self._logits = 3.0 * torch.randn(L, VOCABULARY)

    def new_pages(self, num_pages: int) -> KVPages:
        return KVPages(num_layers=1, shape=(num_pages, 1, L, 1), like=self._logits)

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        return self._logits.expand(len(units), L, VOCABULARY)

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden


def _limits(request: SampleRequest) -> Limits:
    return Limits(prompt_tokens=len(request.prompt_ids), max_tokens=request.max_tokens)


def _free_auto() -> AutoBudget:
    free = ForwardCost(positions=np.array([4.0, 256.0]), seconds=np.ones(2))
    nothing, host = (LinearCost(coefficients=np.zeros(n)) for n in (3, 4))
    return AutoBudget(costs=Costs(length=L, target=free, drafter=nothing, host=host))


@pytest.mark.models
def test_memory_is_flat_over_ten_thousand_samples() -> None:
    torch.set_num_threads(1)
    rng, process = np.random.default_rng(0), psutil.Process()
    engine = Engine(
        Steady(),
        settings=EngineSettings(rule=Rule(), batch=BATCH, num_pages=NUM_PAGES),
        limits=_limits,
        drafter=ChainDrafter(rule=Rule(), mask_id=MASK),
        budget=_free_auto(),
    )
    peak, finished, peaks = 0, 0, dict[int, int]()
    for row in range(NUM_SAMPLES):
        prompt = tuple(rng.integers(0, MASK, 9).tolist())  # two blocks and a rest
        engine.add(
            SampleRequest(shard=0, row=row, sample=0, prompt_ids=prompt, key=row, max_tokens=6)
        )
        while engine.num_waiting > BATCH or (row == NUM_SAMPLES - 1 and engine.has_work()):
            finished += len(engine.step())
            peak = max(peak, process.memory_info().rss)
            peaks |= {
                mark: peak for mark in (EARLY, LATE) if finished >= mark and mark not in peaks
            }
    engine.check()
    assert finished == NUM_SAMPLES
    assert engine.num_active == engine.num_waiting == 0
    assert peaks[LATE] < 1.02 * peaks[EARLY]
