"""Logits in pieces: never more rows at once than fit, and the same bits as all together."""

import pytest
import torch
from torch import Tensor

from spot.numerics import ROW_TILE
from spot.targets import logit_rows
from spot.targets.logit_rows import LogitRows, rows_at_once
from spot.targets.paged import PagedTarget
from tests.spot.drafting import all_of

NUM_ROWS = 3 * ROW_TILE + 5


class Counting:
    """A target's head that keeps the sizes of its calls."""

    def __init__(self, target: PagedTarget) -> None:
        self._target, self.banned = target, target.banned
        self.sizes: list[int] = []

    def logits(self, hidden: Tensor) -> Tensor:
        self.sizes.append(len(hidden))
        return self._target.logits(hidden)


def _small(patch: pytest.MonkeyPatch, target: PagedTarget) -> None:
    """Let one tile of rows fill a piece."""
    patch.setattr(logit_rows, "PIECE_BYTES", 4 * len(target.banned) * ROW_TILE)


def _hidden(target: PagedTarget, num: int = NUM_ROWS) -> Tensor:
    return torch.randn(
        num, target.model.config.hidden_size, generator=torch.Generator().manual_seed(0)
    )


def test_a_piece_is_as_many_whole_tiles_as_fit_and_one_at_least() -> None:
    assert rows_at_once(2048) == 2**27 // (4 * 2048)
    assert rows_at_once(151_936) == 6 * ROW_TILE
    assert rows_at_once(151_936, bytes_each=32) == ROW_TILE


def test_rows_that_fit_into_one_piece_are_computed_once(twin: PagedTarget) -> None:
    head = Counting(twin)
    rows = LogitRows(head, _hidden(twin))
    rows.best()
    all_of(rows)
    assert head.sizes == [NUM_ROWS]


def test_no_more_rows_than_a_piece_go_through_the_head_at_once(
    twin: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    _small(monkeypatch, twin)
    head = Counting(twin)
    LogitRows(head, _hidden(twin)).best()
    assert head.sizes == [ROW_TILE, ROW_TILE, ROW_TILE, 5]


def test_pieces_give_the_same_bits(twin: PagedTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = _hidden(twin)
    whole = LogitRows(twin, hidden)
    found = whole.best()
    _small(monkeypatch, twin)
    pieces = LogitRows(twin, hidden)
    assert all(torch.equal(a, b) for a, b in zip(pieces.best(), found, strict=True))
    some = torch.tensor([40, 2, 99, 2])
    assert torch.equal(pieces[some], whole[some])
    assert torch.isneginf(pieces[some][:, twin.banned]).all()


def test_joined_rows_are_those_of_their_parts_kept_or_not(
    twin: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [LogitRows(twin, _hidden(twin, num)) for num in (7, ROW_TILE)]
    for part in parts:
        part.best()
    expected = torch.cat([all_of(part) for part in parts])
    assert torch.equal(all_of(LogitRows.join(parts)), expected)
    _small(monkeypatch, twin)
    assert torch.equal(all_of(LogitRows.join(parts)), expected)
