"""Each family against an independent forward: released layout in, the right logits out."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from spot.targets.base import CacheContext, Canvas, CanvasUnit, State, Unit
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.family import DtypeName, TargetError
from spot.targets.paged import PagedTarget
from spot.targets.registry import load_target
from tests.checkpoints import FamilyName, specials_of, write_released
from tests.spot.plain_models import PlainModel

L = 8
PAGED: tuple[FamilyName, ...] = ("sdar", "llada2")
CANVAS: tuple[FamilyName, ...] = ("llada", "dream")
CONTEXTS: tuple[CacheContext, ...] = ("prefix", "prefix+suffix")


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[FamilyName, Path]:
    """A checkpoint of each family."""
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("released")
    return {family: write_released(family, root / family) for family in (*PAGED, *CANVAS)}


def plain(directory: Path) -> PlainModel:
    return PlainModel(directory, block_length=L, dtype=torch.float32)


def tokens(seed: int, num: int, *, family: FamilyName) -> State:
    """Any tokens, masks among them."""
    rows = specials_of(family)
    return np.random.default_rng(seed).integers(0, rows.first + len(rows.tokens), num)


def paged_logits(target: PagedTarget, ids: State) -> Tensor:
    """Logits of the last block behind stored pages of the others."""
    blocks, last = ids.reshape(-1, L), len(ids) // L - 1
    pages = target.new_pages(last + 1)
    stores = [
        Unit(state=blocks[b], start=b * L, pages=tuple(range(b)), write=b) for b in range(last)
    ]
    unit = Unit(state=blocks[last], start=last * L, pages=tuple(range(last)))
    return target.logits(target.hidden([unit, *stores], pages)[0])


@pytest.mark.parametrize("num_blocks", [1, 2, 7])
@pytest.mark.parametrize("family", PAGED)
def test_a_block_behind_pages_has_the_logits_of_a_plain_forward(
    directories: dict[FamilyName, Path], family: FamilyName, num_blocks: int
) -> None:
    target = PagedTarget.load(directories[family])
    ids = tokens(num_blocks, num_blocks * L, family=family)
    expected = plain(directories[family]).logits(ids.tolist())[-L:]
    assert torch.allclose(paged_logits(target, ids), expected, atol=1e-4)


@pytest.mark.parametrize(("num", "start"), [(8, 0), (29, 13), (29, 21), (60, 20)])
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("family", CANVAS)
def test_an_opened_block_has_the_logits_of_a_plain_forward(
    directories: dict[FamilyName, Path],
    family: FamilyName,
    context: CacheContext,
    num: int,
    start: int,
) -> None:
    target = NativeCanvasTarget.load(directories[family], block_length=L)
    ids = tokens(num, num, family=family)
    (opened,) = target.open([Canvas(ids, start)], context=context)
    expected = plain(directories[family]).logits(ids.tolist())[start : start + L]
    assert torch.allclose(target.logits(opened.hidden), expected, atol=1e-4)


@pytest.mark.parametrize("start", [0, 13, 21])
@pytest.mark.parametrize("family", CANVAS)
def test_the_opening_state_behind_a_frozen_canvas_is_the_canvas_itself(
    directories: dict[FamilyName, Path], family: FamilyName, start: int
) -> None:
    target = NativeCanvasTarget.load(directories[family], block_length=L)
    ids = tokens(5, 29, family=family)
    (opened,) = target.open([Canvas(ids, start)], context="prefix+suffix")
    unit = CanvasUnit(state=ids[start : start + L], opened=opened)
    assert torch.allclose(target.hidden([unit])[0], opened.hidden, atol=1e-4)


REMOTE = "raise SystemExit('remote code ran')"


@pytest.mark.parametrize("family", [*PAGED, *CANVAS])
def test_remote_code_beside_a_checkpoint_is_never_run(
    directories: dict[FamilyName, Path], tmp_path: Path, family: FamilyName
) -> None:
    copy = Path(shutil.copytree(directories[family], tmp_path / "copy"))
    for name in ("modeling", "configuration", "tokenization"):
        (copy / f"{name}_{family}.py").write_text(REMOTE)
    target = load_target(copy)
    assert target.tokenizer.encode("a", add_special_tokens=False)


@pytest.mark.parametrize("family", CANVAS)
def test_states_of_several_canvases_have_the_same_bits_together_and_alone(
    directories: dict[FamilyName, Path], family: FamilyName
) -> None:
    target = NativeCanvasTarget.load(directories[family], block_length=L)
    units = []
    for num, start in ((29, 13), (60, 20), (40, 8)):
        ids = tokens(num, num, family=family)
        (opened,) = target.open([Canvas(ids, start)], context="prefix+suffix")
        units += [CanvasUnit(state=np.roll(ids[:L], n), opened=opened) for n in range(3)]
    together = target.hidden(units)
    for unit, hidden in zip(units, together, strict=True):
        assert torch.equal(target.hidden([unit])[0], hidden)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("family", CANVAS)
def test_canvases_have_the_same_bits_opened_together_and_alone(
    directories: dict[FamilyName, Path], family: FamilyName, context: CacheContext
) -> None:
    target = NativeCanvasTarget.load(directories[family], block_length=L)
    canvases = [
        Canvas(tokens(num, num, family=family), start)
        for num, start in ((29, 13), (60, 20), (L, 0), (29, 21))
    ]
    for canvas, opened in zip(canvases, target.open(canvases, context=context), strict=True):
        (alone,) = target.open([canvas], context=context)
        assert torch.equal(alone.hidden, opened.hidden)
        for one, other in zip(alone.keys + alone.values, opened.keys + opened.values, strict=True):
            assert torch.equal(one, other)
        unit = CanvasUnit(state=canvas.tokens[:L], opened=opened)
        again = CanvasUnit(state=canvas.tokens[:L], opened=alone)
        assert torch.equal(target.hidden([unit]), target.hidden([again]))


def test_a_prefix_only_context_hides_what_follows_and_the_other_shows_it(
    directories: dict[FamilyName, Path],
) -> None:
    target = NativeCanvasTarget.load(directories["llada"], block_length=L)
    ids = tokens(5, 29, family="llada")
    (shown,) = target.open([Canvas(ids, 13)], context="prefix+suffix")
    (hidden,) = target.open([Canvas(ids, 13)], context="prefix")
    assert (shown.keys[0].shape[1], hidden.keys[0].shape[1]) == (29 - L, 13)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("family", [*PAGED, *CANVAS])
def test_weights_are_kept_in_the_type_that_is_asked_for(
    directories: dict[FamilyName, Path], family: FamilyName, dtype: DtypeName
) -> None:
    model = load_target(directories[family], dtype=dtype).model
    wide = {torch.float32} if family == "llada2" else set()  # its router is declared so
    assert {p.dtype for p in model.parameters()} == {getattr(torch, dtype)} | wide


def test_a_bidirectional_checkpoint_has_no_pages_and_a_block_causal_one_no_canvas(
    directories: dict[FamilyName, Path],
) -> None:
    with pytest.raises(TargetError, match="llada attends both ways"):
        PagedTarget.load(directories["llada"])
    with pytest.raises(TargetError, match="sdar attends back only"):
        NativeCanvasTarget.load(directories["sdar"])
