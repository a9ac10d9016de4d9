"""Out of memory: the batch is halved, the ceiling remembered, and no output changes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from spot.attention import KVPages
from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.order_model import OrderModel
from spot.drafters.spot import SpotDrafter
from spot.limits import Limits
from spot.numerics import ROW_TILE
from spot.targets import logit_rows
from spot.targets.base import Unit
from spot.targets.paged import PagedTarget
from spot.transition import Rule
from tests.spot.drafting import all_of
from tests.twins import BLOCK_LENGTH, MASK_ID, write_sdar_twin
from workers.budget import FixedBudget
from workers.engine import Engine, EngineSettings
from workers.forwarding import Forwarder, in_pieces, is_out_of_memory
from workers.rounds import Round
from workers.samples import SampleRequest, SampleResult

L = BLOCK_LENGTH


def _cuda() -> Exception:
    return torch.OutOfMemoryError("CUDA out of memory")


def _cpu() -> Exception:
    return RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")


class Tight(PagedTarget):
    """A target on a device that holds so many units of one forward."""

    room = 10**9
    fail: Callable[[], Exception]
    sizes: list[int]

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        if len(units) > self.room:
            raise self.fail()
        self.sizes.append(len(units))
        return super().hidden(units, pages)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_sdar_twin(Path(tmp_path_factory.mktemp("twin")))


def _tight(path: Path, room: int, error: Callable[[], Exception] = _cuda) -> Tight:
    target = Tight.load(path)
    target.room, target.fail, target.sizes = room, error, []
    return target


def _limits(request: SampleRequest) -> Limits:
    return Limits(prompt_tokens=len(request.prompt_ids), max_tokens=request.max_tokens)


def _requests() -> list[SampleRequest]:
    rng = np.random.default_rng(3)
    prompts = [tuple(int(i) for i in rng.integers(0, 256, n)) for n in (3, 2 * L, 5, 3 * L + 1)]
    return [
        SampleRequest(shard=0, row=row, sample=0, prompt_ids=prompt, key=row, max_tokens=2 * L)
        for row, prompt in enumerate(prompts)
    ]


WARM = Rule(temperature=1.0)


def _engine(target: PagedTarget, *, budget: int = 6, rule: Rule = WARM) -> Engine:
    torch.manual_seed(0)
    shape = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
    return Engine(
        target,
        settings=EngineSettings(rule=rule, batch=4, num_pages=60, traced=True),
        limits=_limits,
        drafter=SpotDrafter(OrderModel(shape).eval(), rule=rule, mask_id=MASK_ID),
        budget=FixedBudget(budget),
    )


def _decode(engine: Engine) -> list[SampleResult]:
    for request in _requests():
        engine.add(request)
    results = []
    while engine.has_work():
        results += engine.step()
        engine.check()
    return sorted(results, key=lambda result: result.request.row)


def _reference(target: PagedTarget) -> list[tuple[int, ...]]:
    decoder = ReferenceDecoder(target, rule=Rule(temperature=1.0))
    return [
        decoder.decode(Sample(prompt_ids=r.prompt_ids, key=r.key, limits=_limits(r))).token_ids
        for r in _requests()
    ]


@pytest.mark.parametrize("error", [_cuda, _cpu, MemoryError], ids=["cuda", "cpu", "python"])
@pytest.mark.parametrize("room", [1, 2, 5, 11])
def test_outputs_are_those_of_a_device_with_room(
    path: Path, room: int, error: Callable[[], Exception]
) -> None:
    target = _tight(path, room, error)
    engine = _engine(target)
    results = _decode(engine)
    assert engine.counters()["out_of_memory"] > 0
    assert max(target.sizes) <= room
    target.room = 10**9
    assert [r.token_ids for r in results] == _reference(target)


def test_the_ceiling_is_remembered(path: Path) -> None:
    engine = _engine(_tight(path, 8))
    _decode(engine)
    first = engine.counters()["out_of_memory"]
    _decode(engine)
    assert engine.counters()["out_of_memory"] == first


def test_memory_for_not_even_one_state_is_the_targets_own_error(path: Path) -> None:
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        _decode(_engine(_tight(path, 0)))


def test_other_errors_are_not_swallowed(path: Path) -> None:
    engine = _engine(_tight(path, 3, lambda: RuntimeError("shape mismatch")))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        _decode(engine)
    assert engine.counters()["out_of_memory"] == 0


def test_the_cpu_allocator_is_recognised_by_a_real_failure() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.int8)
    assert is_out_of_memory(caught.value)


def test_stores_come_before_the_states_that_read_them(path: Path) -> None:
    target = _tight(path, 1)
    rng = np.random.default_rng(0)
    first, second, state = (rng.integers(0, 256, L) for _ in range(3))
    state[2] = MASK_ID
    round_ = Round(
        states=[Unit(state=state, start=2 * L, pages=(0, 1))],
        stores=[
            Unit(state=first, start=0, pages=(), write=0),
            Unit(state=second, start=L, pages=(0,), write=1),
        ],
    )
    in_pieces_found = Forwarder(target, target.new_pages(2)).run(round_)
    target.room = 3
    whole = Forwarder(target, target.new_pages(2)).run(round_)
    assert in_pieces_found is not None
    assert whole is not None
    assert torch.equal(all_of(in_pieces_found.logits), all_of(whole.logits))
    assert torch.equal(in_pieces_found.row_of, whole.row_of)


def test_pieces_cover_everything_in_order() -> None:
    units = [Unit(state=np.zeros(L, np.int64), start=i, pages=()) for i in range(7)]
    pieces = in_pieces(units, 3)
    assert [[u.start for u in piece] for piece in pieces] == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.parametrize(
    "rule",
    [
        Rule(),
        Rule(temperature=1.0, top_k=9),
        Rule(name="threshold", tau=0.1, temperature=1.0),
        Rule(name="low_confidence_dynamic", tau=0.2, temperature=1.0),
        Rule(name="entropy_bounded", entropy_bound=1.0),
    ],
    ids=lambda rule: f"{rule.name} T {rule.temperature:g}",
)
def test_a_vocabulary_that_does_not_fit_changes_nothing(
    path: Path, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = _tight(path, 10**9)
    whole = _decode(_engine(target, rule=rule))
    monkeypatch.setattr(logit_rows, "PIECE_BYTES", 4 * len(target.banned) * ROW_TILE)
    pieces = _decode(_engine(target, rule=rule))
    assert [(r.trace, r.nfe) for r in pieces] == [(r.trace, r.nfe) for r in whole]
