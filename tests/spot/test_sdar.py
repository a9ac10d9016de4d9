"""The SDAR adapter: real layout in, the right logits out, whatever shares the forward."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from spot.numerics import make_invariant
from spot.targets.base import State, Unit, evaluate
from spot.targets.family import TargetError
from spot.targets.paged import PagedTarget
from tests.spot.drafting import all_of
from tests.spot.plain import PlainDecoder
from tests.twins import BLOCK_LENGTH, MASK_ID, write_sdar_twin

L = BLOCK_LENGTH


def _blocks(seed: int, num: int) -> State:
    return np.random.default_rng(seed).integers(0, 260, (num, L))


def _behind(target: PagedTarget, blocks: State) -> torch.Tensor:
    """Logits of the last block, with all earlier ones stored in one forward."""
    pages = target.new_pages(len(blocks))
    last = len(blocks) - 1
    stores = [
        Unit(state=blocks[b], start=b * L, pages=tuple(range(b)), write=b) for b in range(last)
    ]
    unit = Unit(state=blocks[last], start=last * L, pages=tuple(range(last)))
    hidden = target.hidden([unit, *stores], pages)[0]
    return target.logits(hidden)


@pytest.mark.parametrize("num_blocks", [1, 2, 5, 9])
def test_logits_equal_those_of_a_plain_block_causal_forward(
    twin: PagedTarget, twin_path: Path, num_blocks: int
) -> None:
    blocks = _blocks(num_blocks, num_blocks)
    plain = PlainDecoder(twin_path, block_length=L).logits(blocks.flatten().tolist())[-L:]
    found = _behind(twin, blocks).double()
    allowed = ~twin.banned
    assert torch.allclose(found[:, allowed], plain[:, allowed], atol=1e-4)


@pytest.mark.parametrize("chunk", [1, 2, 8])
def test_prefill_in_any_chunking_gives_the_same_bits(twin: PagedTarget, chunk: int) -> None:
    blocks = _blocks(4, 9)
    pages = twin.new_pages(9)
    for first in range(0, 8, chunk):
        units = [
            Unit(state=blocks[b], start=b * L, pages=tuple(range(b)), write=b)
            for b in range(first, min(first + chunk, 8))
        ]
        twin.hidden(units, pages)
    unit = Unit(state=blocks[8], start=8 * L, pages=tuple(range(8)))
    logits = twin.logits(twin.hidden([unit], pages)[0])
    assert torch.equal(logits, _behind(twin, blocks))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("company", [2, 5, 13])
def test_a_state_has_the_same_bits_alone_and_in_every_slot(
    twin: PagedTarget, company: int, threads: int
) -> None:
    blocks = _blocks(1, 7)
    pages = twin.new_pages(6)
    twin.hidden(
        [Unit(state=blocks[b], start=b * L, pages=tuple(range(b)), write=b) for b in range(6)],
        pages,
    )
    unit = Unit(state=blocks[6], start=6 * L, pages=tuple(range(6)))
    alone = twin.logits(twin.hidden([unit], pages)[0])
    others = [Unit(state=s, start=(i % 3) * L, pages=tuple(range(i % 3)))
              for i, s in enumerate(_blocks(2, company - 1))]  # fmt: skip
    torch.set_num_threads(threads)
    try:
        for slot in range(company):
            units = [*others[:slot], unit, *others[slot:]]
            hidden = twin.hidden(units, pages)
            logits = twin.logits(hidden.flatten(0, 1))[slot * L : (slot + 1) * L]
            assert torch.equal(logits, alone)
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("rows", [1, 3, 31, 40])
def test_wide_layers_give_the_same_bits_for_any_number_of_rows(rows: int) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(1400, 96))
    make_invariant(module)
    x = torch.randn(64, 1400)
    padded = torch.cat([x[:rows], torch.zeros(max(0, 32 - rows), 1400)])
    assert torch.equal(module(padded)[:rows], module(x)[:rows])


def test_conditionals_are_computed_at_masked_positions_only(twin: PagedTarget) -> None:
    state = _blocks(3, 1)[0]
    state[[1, 4]] = MASK_ID
    found = evaluate(twin, [Unit(state=state, start=0, pages=())], twin.new_pages(1), num_states=1)
    assert found.row_of.tolist() == [[-1, 0, -1, -1, 1, -1, -1, -1]]
    assert found.logits.shape[0] == 2
    assert torch.isneginf(all_of(found.logits)[:, twin.banned]).all()


def test_weights_that_do_not_belong_are_refused(tmp_path: Path) -> None:
    directory = write_sdar_twin(tmp_path / "twin")
    weights = load_file(directory / "model.safetensors")
    weights["model.layers.0.extra"] = weights.pop("model.norm.weight").clone()
    save_file(weights, directory / "model.safetensors")
    with pytest.raises(TargetError, match=r"missing weights \['model.norm.weight'\]"):
        PagedTarget.load(directory)
