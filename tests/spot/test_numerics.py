"""Bit equality up to the widths of real targets: rows, threads, slots, company, prefill, cache."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from spot.attention import KVPages
from spot.numerics import ROW_TILE, make_invariant, pad_rows
from spot.targets.base import State, Unit
from spot.targets.paged import PagedTarget
from tests.twins import BLOCK_LENGTH, write_sdar_twin

pytestmark = pytest.mark.models
L = BLOCK_LENGTH
WIDTHS = (192, 1024, 4096)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="module", params=WIDTHS)
def wide(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PagedTarget:
    """A target of two layers with a real target's width."""
    path = write_sdar_twin(
        Path(tmp_path_factory.mktemp("wide")),
        hidden=request.param,
        feedforward=3 * request.param // 2,
    )
    return PagedTarget.load(path)


def _blocks(seed: int, num: int) -> State:
    return np.random.default_rng(seed).integers(0, 256, (num, L))


def _stores(blocks: State) -> list[Unit]:
    return [
        Unit(state=state, start=b * L, pages=tuple(range(b)), write=b)
        for b, state in enumerate(blocks)
    ]


def _logits(target: PagedTarget, units: list[Unit], pages: KVPages) -> Tensor:
    return target.logits(target.hidden(units, pages).flatten(0, 1)).view(len(units), L, -1)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_state_has_the_same_bits_in_every_company(wide: PagedTarget, threads: int) -> None:
    blocks = _blocks(1, 7)
    pages = wide.new_pages(6)
    wide.hidden(_stores(blocks[:6]), pages)
    unit = Unit(state=blocks[6], start=6 * L, pages=tuple(range(6)))
    alone = _logits(wide, [unit], pages)[0]
    torch.set_num_threads(threads)
    for company in (2, 5, 17, 40):
        neighbours = [
            Unit(state=state, start=(i % 4) * L, pages=tuple(range(i % 4)))
            for i, state in enumerate(_blocks(company, company - 1))
        ]
        for slot in {0, company // 2, company - 1}:
            units = [*neighbours[:slot], unit, *neighbours[slot:]]
            assert torch.equal(_logits(wide, units, pages)[slot], alone), (company, slot)


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_prefill_has_the_same_bits_in_any_chunking(wide: PagedTarget, chunk: int) -> None:
    blocks = _blocks(2, 5)
    stores = _stores(blocks)
    whole, parts = wide.new_pages(5), wide.new_pages(5)
    wide.hidden(stores, whole)
    for first in range(0, 5, chunk):
        wide.hidden(stores[first : first + chunk], parts)
    for together, apart in zip(whole.keys + whole.values, parts.keys + parts.values, strict=True):
        assert torch.equal(together, apart)


@pytest.mark.parametrize("width", [512, 513, 4096])
@pytest.mark.parametrize("threads", [1, 2])
def test_products_do_not_depend_on_how_many_rows_there_are(width: int, threads: int) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(width, 160))
    make_invariant(module)
    x = torch.randn(4 * ROW_TILE, width)
    expected = module(x)
    torch.set_num_threads(threads)
    for rows in (1, 2, 15, 16, 17, 31, 32, 33, 64, 100):
        assert torch.equal(module(pad_rows(x[:rows]))[:rows], expected[:rows]), rows


@pytest.mark.parametrize("rows", [0, 1, 32, 33])
def test_rows_are_padded_to_whole_tiles(rows: int) -> None:
    padded = pad_rows(torch.ones(rows, 3))
    assert padded.shape == (max(1, -(-rows // ROW_TILE)) * ROW_TILE, 3)
    assert padded.sum() == 3 * rows
