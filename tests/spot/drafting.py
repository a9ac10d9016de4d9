"""What a drafter is given, made from logits."""

import numpy as np
import torch
from torch import Tensor

from spot.conditionals import stale_of
from spot.drafters.base import DraftRequest
from spot.targets.base import Conditionals
from spot.targets.logit_rows import LogitRows

MASK_ID, COMMITTED, START = 99, 1, 40


class AsTheyAre:
    """A head whose hidden rows are the logits."""

    def __init__(self, vocab_size: int) -> None:
        self.banned = torch.zeros(vocab_size, dtype=torch.bool)

    def logits(self, hidden: Tensor) -> Tensor:
        """The rows."""
        return hidden


def conditionals_of(logits: Tensor, *, row_of: list[list[int]] | None = None) -> Conditionals:
    """From logits [R, V]; of one state that is all masks unless told otherwise."""
    rows = LogitRows(AsTheyAre(logits.shape[1]), logits)
    states = torch.arange(len(logits))[None] if row_of is None else torch.tensor(row_of)
    return Conditionals(states, rows, *rows.best())


def all_of(rows: LogitRows) -> Tensor:
    """The logits of every row, [R, V]."""
    return rows[torch.arange(rows.shape[0])]


def request_for(
    logits: Tensor,
    *,
    committed: tuple[int, ...] = (),
    key: int = 7,
    budget: int = 100,
    step: int = 0,
    full_states: bool = False,
) -> DraftRequest:
    """A request with these stale logits [L, V]; some positions have been committed since."""
    root = np.full(len(logits), MASK_ID, np.int64)
    root[list(committed)] = COMMITTED
    return DraftRequest(
        root=root,
        stale=stale_of(conditionals_of(logits), [0])[0],
        start=START,
        key=key,
        budget=budget,
        step=step,
        full_states=full_states,
    )


def peaked(best: list[float], *, vocab_size: int = 6) -> Tensor:
    """Logits of positions whose best token, its own index plus 2, has a given probability."""
    probabilities = torch.tensor(best, dtype=torch.float64)
    others = (1 - probabilities) / (vocab_size - 1)
    law = others[:, None].repeat(1, vocab_size)
    law[torch.arange(len(best)), 2 + torch.arange(len(best))] = probabilities
    return law.log().float()
