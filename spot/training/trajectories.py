"""Trajectories of draft-free decoding, as the order model is trained on.

They are recorded through the drafter's own interface: a drafter that proposes nothing sees exactly
what a real one would, roots with the stale conditionals of the state one commit before. (Pairing a
root with its *own* conditionals would leak the label.)

Legend: M recorded roots, B blocks, L block length, K stale candidates.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from spot.drafters.base import DraftRequest, Drafts, no_drafts


class Root(NamedTuple):
    """What a drafter sees at one root."""

    masked: NDArray[np.bool_]  # [L]
    log_probs: NDArray[np.float16]  # [L, K], of the state one commit before
    doubts: NDArray[np.float16]  # [L], likewise


class Recorder:
    """A drafter that proposes nothing and remembers what it was asked."""

    def __init__(self, *, mask_id: int) -> None:
        self._mask_id = mask_id
        self._roots: dict[tuple[int, int], list[Root]] = defaultdict(list)

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """No drafts."""
        for request in requests:
            masked = request.root == self._mask_id
            root = Root(masked, request.stale.log_probs, request.stale.doubts)
            self._roots[request.key, request.start].append(root)
        return [no_drafts(len(request.root)) for request in requests]

    def take(self, key: int) -> dict[int, list[Root]]:
        """The roots of a finished sample by block start; forgets them."""
        found = sorted(name for name in self._roots if name[0] == key)
        return {name[1]: self._roots.pop(name) for name in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectories:
    """Recorded blocks.

    Root ``i`` belongs to block ``block[i]`` and was seen before commit ``step[i]`` of that block;
    ``order[b, j]`` is the position of commit j, -1 past the last one.
    """

    log_probs: NDArray[np.float16]  # [M, L, K]
    doubts: NDArray[np.float16]  # [M, L]
    masked: NDArray[np.bool_]  # [M, L]
    block: NDArray[np.int64]  # [M]
    step: NDArray[np.int64]  # [M]
    order: NDArray[np.int64]  # [B, L]
    sample: NDArray[np.int64]  # [B]

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        save_file({name: getattr(self, name) for name in self.__slots__}, path)

    @classmethod
    def load(cls, paths: list[Path]) -> "Trajectories":
        """Read and join files; block numbers are shifted, sample numbers are kept."""
        parts = [load_file(path) for path in paths]
        shift = np.cumsum([0, *(len(part["order"]) for part in parts)])
        for part, by in zip(parts, shift, strict=False):
            part["block"] = part["block"] + by
        return cls(**{n: np.concatenate([part[n] for part in parts]) for n in cls.__slots__})

    def select(self, keep: NDArray[np.bool_]) -> "Trajectories":
        """The roots of chosen blocks ([B]); block numbers stay."""
        roots = keep[self.block]
        return Trajectories(
            log_probs=self.log_probs[roots],
            doubts=self.doubts[roots],
            masked=self.masked[roots],
            block=self.block[roots],
            step=self.step[roots],
            order=self.order,
            sample=self.sample,
        )


def assemble(
    samples: list[tuple[int, dict[int, list[Root]], list[int]]], *, length: int
) -> Trajectories:
    """Join recorded roots with the commits that followed them.

    Args:
        samples: per sample its number, its roots by block start, and the absolute positions of all
            its commits in order.
        length: L.
    """
    roots: list[Root] = []
    block: list[int] = []
    step: list[int] = []
    orders: list[NDArray[np.int64]] = []
    numbers: list[int] = []
    for number, by_start, positions in samples:
        for start, seen in by_start.items():
            order = [p - start for p in positions if start <= p < start + length]
            roots += seen
            block += [len(orders)] * len(seen)
            step += range(1, len(seen) + 1)
            orders.append(np.array(order + [-1] * (length - len(order)), np.int64))
            numbers.append(number)
    return Trajectories(
        log_probs=np.stack([r.log_probs for r in roots]),
        doubts=np.stack([r.doubts for r in roots]),
        masked=np.stack([r.masked for r in roots]),
        block=np.array(block, np.int64),
        step=np.array(step, np.int64),
        order=np.stack(orders),
        sample=np.array(numbers, np.int64),
    )


class Examples(NamedTuple):
    """Training examples: a root, the d true commits after it as the path, the next commit."""

    root: NDArray[np.int64]  # [N], index into the roots
    depth: NDArray[np.int64]  # [N]
    taken: NDArray[np.bool_]  # [N, L]
    label: NDArray[np.int64]  # [N]


def examples_at(
    trajectories: Trajectories, roots: NDArray[np.int64], depths: NDArray[np.int64]
) -> Examples:
    """Examples at given roots and depths; pairs past the end of their block are dropped."""
    order = trajectories.order[trajectories.block[roots]]
    at = trajectories.step[roots] + depths
    inside = at < order.shape[1]
    label = np.where(inside, order[np.arange(len(roots)), np.minimum(at, order.shape[1] - 1)], -1)
    good = label >= 0
    roots, depths, order, at, label = roots[good], depths[good], order[good], at[good], label[good]
    places = np.arange(order.shape[1])
    path = (places >= (at - depths)[:, None]) & (places < at[:, None])
    taken = np.zeros(order.shape, bool)
    row, column = np.nonzero(path)
    taken[row, order[row, column]] = True
    return Examples(roots, depths, taken, label)
