"""What a drafter keeps of a state's conditionals: the top-32 log-probabilities of each position."""

import numpy as np
import torch
from torch import Tensor

from spot.drafters.base import DOUBT_FLOOR, LOG_FLOOR, STALE_TOP, Stale
from spot.targets.base import Conditionals
from spot.targets.logit_rows import LogitRows, rows_at_once


def stale_of(conditionals: Conditionals, states: list[int]) -> list[Stale]:
    """Stale conditionals of chosen states, extracted in one call.

    Args:
        conditionals: of all evaluated states.
        states: indices into them.
    """
    if not states:
        return []
    row_of = conditionals.row_of[states]
    masked = row_of >= 0
    rows = row_of[masked]
    values, indices = _top(conditionals.logits, rows)
    width = values.shape[1]
    logs = values - values[:, :1] + conditionals.confidence[rows][:, None]
    doubts = torch.zeros(row_of.shape, dtype=torch.float16)
    log_probs = torch.full((*row_of.shape, STALE_TOP), LOG_FLOOR, dtype=torch.float16)
    tokens = torch.zeros((*row_of.shape, STALE_TOP), dtype=torch.int64)
    where = masked.cpu()
    padded = torch.full((len(rows), STALE_TOP), LOG_FLOOR)
    padded[:, :width] = logs.clamp(min=LOG_FLOOR).cpu()
    ids = torch.zeros((len(rows), STALE_TOP), dtype=torch.int64)
    ids[:, :width] = indices.cpu()
    log_probs[where], tokens[where] = padded.half(), ids
    doubts[where] = (-conditionals.confidence[rows]).log().clamp(min=DOUBT_FLOOR).cpu().half()
    return [
        Stale(log_probs=p.numpy(), doubts=d.numpy(), tokens=t.numpy(), masked=np.asarray(m.numpy()))
        for p, d, t, m in zip(log_probs, doubts, tokens, where, strict=True)
    ]


def _top(logits: LogitRows, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The best logits of chosen rows and their ids, [R, K] with K at most 32; in pieces."""
    vocab_size = logits.shape[1]
    width = min(STALE_TOP, vocab_size)
    pieces = [logits[some].topk(width, dim=-1) for some in rows.split(rows_at_once(vocab_size))]
    return torch.cat([p.values for p in pieces]), torch.cat([p.indices for p in pieces])
