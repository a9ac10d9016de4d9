"""The processes that share a target, and the two exchanges between them.

Sums are taken in the order of the ranks, so that they depend neither on how many rows there are nor
on how a library would cut them up.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch import distributed as dist


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """This process's number among ``size``; without a group (size 1) nothing is exchanged."""

    rank: int
    size: int

    def sum(self, part: Tensor) -> Tensor:
        """The sum of all ranks' parts, the same bits on every rank."""
        parts = self._gather(part)
        total = parts[0]
        for other in parts[1:]:
            total = total + other
        return total

    def concatenate(self, part: Tensor) -> Tensor:
        """All ranks' parts side by side, along the last dimension."""
        return torch.cat(self._gather(part), dim=-1)

    def _gather(self, part: Tensor) -> list[Tensor]:
        part = part.contiguous()
        parts = [torch.empty_like(part) for _ in range(self.size)]
        dist.all_gather(parts, part)
        return parts

    def from_first(self, tensor: Tensor) -> Tensor:
        """Rank 0's tensor, received in place on the others."""
        dist.broadcast(tensor, src=0)
        return tensor


def join(file: Path, *, rank: int, size: int, device: str) -> Ranks:
    """Meet the other ranks through a file that none of them has made before."""
    backend = "nccl" if torch.device(device).type == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=f"file://{file}", rank=rank, world_size=size)
    return Ranks(rank=rank, size=size)


def leave() -> None:
    """Part from the other ranks."""
    dist.destroy_process_group()
