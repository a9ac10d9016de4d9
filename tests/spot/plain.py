"""An independent, slow decoder: no cache, no batching, one whole forward for each commit.

Written from the description of strict decoding, for comparison only.
"""

from pathlib import Path
from typing import NamedTuple

import torch

from spot.noise import gumbel_rows
from tests.spot.plain_models import PlainModel
from tests.twins import MASK_ID, PAD_ID, STOP_ID, VOCAB_ROWS


class Ids(NamedTuple):
    """The ids that decoding must know; ids from ``num_tokens`` on are no tokens."""

    mask: int
    stops: tuple[int, ...]
    num_tokens: int
    rows: int


TWIN = Ids(mask=MASK_ID, stops=(STOP_ID, PAD_ID), num_tokens=260, rows=VOCAB_ROWS)


class PlainDecoder:
    """Strict decoding in fp64."""

    def __init__(self, directory: Path, *, block_length: int, ids: Ids = TWIN) -> None:
        self._model = PlainModel(directory, block_length=block_length, dtype=torch.float64)
        self._length, self._ids = block_length, ids

    def logits(self, ids: list[int]) -> torch.Tensor:
        """[positions, V], what is never output at -inf."""
        logits = self._model.logits(ids)
        logits[:, self._ids.mask] = -torch.inf
        logits[:, self._ids.num_tokens :] = -torch.inf
        return logits

    def decode(
        self, prompt: list[int], *, max_tokens: int, temperature: float = 0.0, key: int = 0
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Output ids and commits (position, token) in order."""
        ids, commits, mask = list(prompt), [], self._ids.mask
        while True:
            ids += [mask] * (-len(ids) % self._length or self._length)
            first = len(ids) - self._length
            while mask in ids[max(first, len(prompt)) :]:
                open_places = [p for p in range(first, len(ids)) if ids[p] == mask]
                logits = self.logits(ids)
                best = max(open_places, key=lambda p: (_doubt(logits[p]), -p))
                token = self._token(logits[best], temperature=temperature, key=key, position=best)
                ids[best] = token
                commits.append((best, token))
                end = self._end(ids, prompt=len(prompt), max_tokens=max_tokens)
                if end is not None:
                    return ids[len(prompt) : end], commits

    def _token(self, logits: torch.Tensor, *, temperature: float, key: int, position: int) -> int:
        if temperature == 0.0:
            return int(logits.argmax())
        noise = gumbel_rows(
            torch.tensor([key]), torch.tensor([position]), vocab_size=self._ids.rows
        )[0]
        return int((logits / temperature + noise).argmax())

    def _end(self, ids: list[int], *, prompt: int, max_tokens: int) -> int | None:
        for position in range(prompt, len(ids)):
            if position >= prompt + max_tokens:
                return position
            if ids[position] == self._ids.mask:
                return None
            if ids[position] in self._ids.stops:
                return position
        return prompt + max_tokens if len(ids) >= prompt + max_tokens else None


def _doubt(logits: torch.Tensor) -> float:
    """Log of the top probability, from the others."""
    others = (logits - logits.max()).exp()
    others[logits.argmax()] = 0.0
    return -float(torch.log1p(others.sum()))
