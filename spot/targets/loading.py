"""Everything that a model directory holds, loaded: what a target is made of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor

from spot.attention import NAME
from spot.targets.canvas_attention import CANVAS
from spot.targets.checkpoint import TargetSpec, read_config, spec_of
from spot.targets.families import family_of
from spot.targets.family import DtypeName, TargetError
from spot.targets.files import CONFIG
from spot.targets.native import load_model
from spot.targets.parallel.ranks import Ranks
from spot.targets.tokenizer import banned_ids, load_tokenizer


class Options(TypedDict, total=False):
    """What a load may choose; see ``load``."""

    block_length: int | None
    numerics: str
    dtype: DtypeName
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A native model with its tokenizer and what decoding must know about it."""

    spec: TargetSpec
    model: Any
    tokenizer: Any
    banned: Tensor  # bool [V]
    num_key_heads: int  # of this process's part


def load(
    path: str | Path,
    *,
    block_length: int | None = None,
    numerics: str = "invariant",
    dtype: DtypeName = "float32",
    device: str = "cpu",
    ranks: Ranks | None = None,
) -> Loaded:
    """Load a model directory.

    Args:
        path: the directory.
        block_length: where the checkpoint does not say.
        numerics: ``invariant`` or ``fast``.
        dtype: what weights are kept and products computed in.
        device: a torch device.
        ranks: the processes that share the target, if there are several.

    Raises:
        TargetError: something in the directory is missing or contradictory.
    """
    directory = Path(path)
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise TargetError(f"device {device}: this machine has no usable CUDA device: use cpu")
    spec = spec_of(directory, block_length=block_length)
    tokenizer = load_tokenizer(directory)
    model = load_model(
        family_of(read_config(directory), path=directory / CONFIG),
        directory,
        dtype=getattr(torch, dtype),
        device=torch.device(device),
        attention=NAME if spec.exact_prefix else CANVAS,
        numerics=numerics,
        ranks=ranks,
    )
    banned = banned_ids(tokenizer, spec, directory=directory).to(device)
    return Loaded(
        spec=spec,
        model=model,
        tokenizer=tokenizer,
        banned=banned,
        num_key_heads=model.config.num_key_value_heads // (1 if ranks is None else ranks.size),
    )
