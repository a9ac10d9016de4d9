"""A drafter made of malice."""

import numpy as np

from spot.drafters.base import DraftRequest, Drafts
from spot.targets.base import State


class Hostile:
    """Proposes whatever a seed says, within the budget or not.

    Noise, wrong tokens, changed and forgotten commits, full blocks, the root itself, duplicates,
    or nothing; with meaningless masses and depths.
    """

    def __init__(self, seed: int, *, mask_id: int, num_tokens: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._mask_id, self._num_tokens = mask_id, num_tokens

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """See ``Drafter.propose``."""
        return [self._one(request) for request in requests]

    def _one(self, request: DraftRequest) -> Drafts:
        num = int(self._rng.integers(0, 8))
        states = np.array([self._state(request.root) for _ in range(num)], np.int64)
        states = states.reshape(num, len(request.root))
        if num:
            states = states[self._rng.integers(0, num, num)]
        masses = self._rng.random(num).astype(np.float32)
        return Drafts(states, masses, self._rng.integers(0, 9, num))

    def _state(self, root: State) -> State:
        state, kind = root.copy(), self._rng.integers(0, 6)
        noise = self._rng.integers(0, self._num_tokens, len(root))
        masked = state == self._mask_id
        if kind == 0:  # commit somewhere
            some = self._rng.choice(np.flatnonzero(masked))
            state[some] = noise[some]
        elif kind == 1:  # commit half of what is masked
            masked &= self._rng.random(len(state)) < 0.5
            state[masked] = noise[masked]
        elif kind == 2:  # commit everything
            state[masked] = noise[masked]
        elif kind == 3:  # change what is committed already
            state = np.where(self._rng.random(len(state)) < 0.3, self._mask_id, noise)
        elif kind == 4:  # forget all commits
            state[:] = self._mask_id
        return state
