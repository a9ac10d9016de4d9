"""A target that is evaluated once: draft-free decoding is recorded, every other policy replays it.

A draft is accepted only where it is a state of the recorded trajectory, so states that are not in
the record can have any logits: the walk never gets there. So simulated runs need no forwards.

What a drafter proposes is recorded, too, for a run that asks for the same on another clock.

A page is named by the chain of blocks that lead to it, a row by (page, state, position).
"""

import torch
from torch import Tensor

from spot.attention import KVPages
from spot.drafters.base import Drafter, DraftRequest, Drafts
from spot.targets.base import Target, Unit

Name = tuple[int, bytes]
Call = tuple[list[bytes], list[Drafts]]  # roots, and what was proposed for them
NO_PAGE = -1


class _Pages:
    """What each page holds, as a number that stands for the chain of its blocks."""

    def __init__(self) -> None:
        self._numbers: dict[Name, int] = {}
        self._held: dict[int, int] = {}

    def read(self, units: list[Unit]) -> list[Name]:
        """Note what the units write; returns what names each unit's state."""
        for unit in units:
            if unit.write >= 0:
                name = (self._last(unit), unit.state.tobytes())
                self._held[unit.write] = self._numbers.setdefault(name, len(self._numbers))
        return [(self._last(unit), unit.state.tobytes()) for unit in units]

    def _last(self, unit: Unit) -> int:
        return self._held.get(unit.pages[-1] if unit.pages else NO_PAGE, NO_PAGE)


class Recording:
    """The logits of every state of recorded trajectories; memory grows with their rows."""

    def __init__(self) -> None:
        self.first_row: dict[Name, int] = {}
        self.pages = _Pages()
        self._logits: list[Tensor] = []
        self._num_rows = 1  # row 0 stands for whatever was not recorded

    def add(self, names: list[Name], logits: Tensor, *, rows: list[int]) -> None:
        """Logits [R, V] of consecutive states, ``rows`` of them each."""
        assert len(logits) == sum(rows), "the rows of a forward came in pieces"
        for name, num in zip(names, rows, strict=True):
            self.first_row.setdefault(name, self._num_rows)
            self._num_rows += num
        self._logits.append(logits)

    def table(self) -> Tensor:
        """All rows, the unknown one first; [R, V]."""
        self._logits = [torch.cat(self._logits)]
        return torch.cat([torch.zeros_like(self._logits[0][:1]), self._logits[0]])


class RecordingTarget:
    """A target that keeps the logits of what it evaluates; states come before stores."""

    def __init__(self, target: Target, recording: Recording) -> None:
        self._target, self._recording = target, recording
        self.spec, self.banned = target.spec, target.banned
        self._names: list[tuple[Name, int]] = []

    def new_pages(self, num_pages: int) -> KVPages:
        """The target's."""
        return self._target.new_pages(num_pages)

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """The target's."""
        names = self._recording.pages.read(_in_order(units))
        by_unit = dict(zip((id(u) for u in _in_order(units)), names, strict=True))
        masked = [int((u.state == self.spec.mask_id).sum()) for u in units]
        self._names = [(by_unit[id(u)], m) for u, m in zip(units, masked, strict=True) if m]
        return self._target.hidden(units, pages)

    def logits(self, hidden: Tensor) -> Tensor:
        """The target's, kept."""
        logits = self._target.logits(hidden)
        names, rows = [n for n, _ in self._names], [m for _, m in self._names]
        self._recording.add(names, logits, rows=rows)
        return logits


class ReplayedTarget:
    """Gives recorded logits back; its hidden states are row numbers."""

    def __init__(self, target: Target, recording: Recording) -> None:
        self.spec, self.banned = target.spec, target.banned
        self._first_row, self._table = recording.first_row, recording.table()
        self._pages = recording.pages

    def new_pages(self, num_pages: int) -> KVPages:
        """Pages without room: nothing is stored."""
        return KVPages(num_layers=1, shape=(num_pages, 1, 1, 1), like=self._table)

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """Row numbers, int64 [U, L, 1]."""
        ordered = _in_order(units)
        names = dict(zip((id(u) for u in ordered), self._pages.read(ordered), strict=True))
        rows = torch.zeros((len(units), self.spec.block_length, 1), dtype=torch.int64)
        for row, unit in zip(rows, units, strict=True):
            first = self._first_row.get(names[id(unit)])
            if first is not None:
                masked = torch.from_numpy(unit.state == self.spec.mask_id)
                row[masked, 0] = first + torch.arange(int(masked.sum()))
        return rows

    def logits(self, hidden: Tensor) -> Tensor:
        """The rows."""
        return self._table[hidden[:, 0]]


class ReplayedDrafter:
    """A drafter that is asked once: a second run that makes the same calls gets the same drafts."""

    def __init__(self, drafter: Drafter, record: list[Call]) -> None:
        """An empty record is filled, another one is replayed."""
        self._drafter, self._record = drafter, record
        self._recorded = iter(list(record)) if record else None

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """What was proposed the first time."""
        roots = [request.root.tobytes() for request in requests]
        if self._recorded is None:
            drafts = self._drafter.propose(requests)
            self._record.append((roots, drafts))
            return drafts
        asked, drafts = next(self._recorded)
        assert asked == roots, "another run than the recorded one"
        return drafts


def _in_order(units: list[Unit]) -> list[Unit]:
    """Writers first, those with the shortest prefix first, so that pages are known when read."""
    return sorted(units, key=lambda u: (u.write < 0, len(u.pages)))
