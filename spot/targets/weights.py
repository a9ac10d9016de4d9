"""From safetensors files into a model's parameters, one tensor at a time.

Files are memory-mapped, and mapped anew after every ``WINDOW_BYTES``, since pages that were touched
count as memory until their mapping ends: the peak is the model itself and one window. Every stored
tensor must have a place, and every place must be filled, once.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from spot.numerics import CHUNK
from spot.targets.family import Slot, TargetError

WINDOW_BYTES = 64 * 2**20
NUM_NAMED = 3  # names in a message
_CHUNK_NAME = re.compile(r"(.+\.weight)s\.\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One rank's equal part of a parameter, along the rows (0) or the columns (1) of a matrix."""

    dim: int
    rank: int
    size: int

    def of(self, whole: Tensor) -> Tensor:
        """This rank's part of a matrix, or of a vector along its only dimension."""
        dim = min(self.dim, whole.ndim - 1)
        return whole.tensor_split(self.size, dim)[self.rank]


def stored_tensors(files: list[Path]) -> Iterator[tuple[str, Tensor]]:
    """Name and memory-mapped tensor of everything in the files; valid until the next one.

    Raises:
        TargetError: a file is not safetensors, or ends early.
    """
    for file in files:
        try:
            with safe_open(file, framework="pt") as handle:
                names = list(handle.keys())
            yield from _in_windows(file, names)
        except SafetensorError as error:
            raise TargetError(
                f"{file} is not a whole safetensors file ({error}): download it again"
            ) from None


def _in_windows(file: Path, names: list[str]) -> Iterator[tuple[str, Tensor]]:
    while names:
        num_bytes = 0
        with safe_open(file, framework="pt") as handle:
            while names and num_bytes < WINDOW_BYTES:
                tensor = handle.get_tensor(names[0])
                num_bytes += tensor.nbytes
                yield names.pop(0), tensor
                del tensor


def places_of(model: nn.Module) -> dict[str, list[Tensor]]:
    """Every stored parameter and buffer by its native name; chunks of one weight in order."""
    found: dict[str, list[Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        chunk = _CHUNK_NAME.fullmatch(name)
        found.setdefault(name if chunk is None else chunk[1], []).append(tensor)
    return found


class Filling:
    """A model whose memory is reserved, being filled."""

    def __init__(self, model: nn.Module, *, shares: Mapping[str, Share]) -> None:
        """Begin with nothing filled; ``shares`` are the parameters that this rank has in part."""
        self._places, self._shares = places_of(model), shares
        self._open = {name: sum(t.numel() for t in ts) for name, ts in self._places.items()}
        self._unknown: list[str] = []
        self._filled: set[Slot] = set()

    @torch.no_grad()
    def put(self, source: str, stored: Tensor, slots: tuple[Slot, ...]) -> None:
        """Copy a stored tensor to where it belongs, in the type of the place.

        Raises:
            TargetError: it has another shape than its place, or the place is filled already.
        """
        if not slots or any(slot.name not in self._places for slot in slots):
            self._unknown.append(source)
            return
        for slot in slots:
            self._copy(source, stored if slot.rows is None else stored[slice(*slot.rows)], slot)

    def _copy(self, source: str, piece: Tensor, slot: Slot) -> None:
        share = self._shares.get(slot.name)
        piece = piece if share is None else share.of(piece)
        into = slot.into
        if share is not None and share.dim == 0 and into is not None:
            into = (into[0] // share.size, into[1] // share.size)
        regions = [_region(place, slot.entry, into) for place in self._places[slot.name]]
        shape = (*regions[0].shape[:-1], sum(region.shape[-1] for region in regions))
        if tuple(piece.shape) != shape:
            raise TargetError(
                f"{source} has shape {list(piece.shape)} but config.json asks for {list(shape)}: "
                "the files do not belong to this configuration"
            )
        if slot in self._filled:
            raise TargetError(f"{source} is stored twice: download the checkpoint again")
        parts = [piece] if len(regions) == 1 else piece.split(CHUNK, dim=-1)
        for region, part in zip(regions, parts, strict=True):
            region.copy_(part)
        self._filled.add(slot)
        self._open[slot.name] -= piece.numel()

    def fill_from(self, name: str, other: str) -> None:
        """Fill a parameter that is not stored with another one's values."""
        if self._open[name] == sum(t.numel() for t in self._places[name]):
            whole = torch.cat([t.detach() for t in self._places[other]], dim=-1)
            self._copy(other, whole, Slot(name=name))

    def check(self, directory: Path) -> None:
        """Raise `TargetError` unless everything stored had a place and every place is filled."""
        missing = [name for name, num in self._open.items() if num]
        if missing or self._unknown:
            raise TargetError(
                f"{directory}: missing weights {missing[:NUM_NAMED]}, unknown weights "
                f"{self._unknown[:NUM_NAMED]}: the files do not belong to this configuration"
            )


def _region(place: Tensor, entry: int | None, into: tuple[int, int] | None) -> Tensor:
    part = place if entry is None else place[entry]
    return part if into is None else part[slice(*into)]
