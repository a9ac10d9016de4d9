"""The transformers model of a family, made from a model directory; no remote code runs.

Memory is reserved once, in its final type and place, and filled from the files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from spot.numerics import make_invariant
from spot.targets.checkpoint import read_config
from spot.targets.experts import order_experts
from spot.targets.family import Family, TargetError
from spot.targets.files import CONFIG, weight_files
from spot.targets.parallel.ranks import Ranks
from spot.targets.parallel.sharding import check_divisible, connect, shard
from spot.targets.weights import Filling, Share, stored_tensors

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def native_settings(family: Family, directory: Path) -> dict[str, Any]:
    """The native model's settings, each of them stated by the checkpoint or fixed by its family.

    Raises:
        TargetError: one is not stated.
    """
    config, native = read_config(directory), family.native
    absent = [name for name in native.settings.values() if name not in config]
    if absent:
        raise TargetError(f"{directory / CONFIG} does not say {', '.join(absent)}: add it")
    settings = {ours: config[theirs] for ours, theirs in native.settings.items()}
    rope = _rope(config, directory) | (
        {} if native.partial_rotary is None else {"partial_rotary_factor": native.partial_rotary}
    )
    return settings | dict(native.constants) | {"rope_parameters": rope}


def _rope(config: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Older files name the base alone, newer ones a group; only unscaled angles are computed."""
    group = config.get("rope_parameters") or {"rope_theta": config.get("rope_theta")}
    theta, kind = group.get("rope_theta"), group.get("rope_type", "default")
    if kind != "default" or not isinstance(theta, int | float):
        raise TargetError(
            f"{directory / CONFIG} has rope_theta {theta} and rope_type {kind!r}, but only a base "
            "with unscaled angles is supported: use the checkpoint's released configuration"
        )
    return {"rope_type": "default", "rope_theta": float(theta)}


def empty_model(
    family: Family, settings: Mapping[str, Any], *, dtype: torch.dtype, attention: str
) -> Any:
    """The native model without memory; ``attention`` is a registered attention function."""
    config = getattr(transformers, family.native.config)(**settings)
    config._attn_implementation = attention
    if dtype is torch.float64:  # grouped products do not exist in this type
        config._experts_implementation = "eager"
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # a parameter that declares a type of its own keeps it
    try:
        with torch.device("meta"):
            return getattr(transformers, family.native.model)(config)
    finally:
        torch.set_default_dtype(before)


def load_model(
    family: Family,
    directory: Path,
    *,
    dtype: torch.dtype,
    device: torch.device,
    attention: str,
    numerics: str,
    ranks: Ranks | None = None,
) -> Any:
    """The native model with the directory's weights; names must match one to one.

    With ``ranks`` it is this rank's part of the model, and takes part in all exchanges.

    Raises:
        TargetError: weights are missing, left over, of another shape, or not safetensors.
    """
    settings = native_settings(family, directory)
    model = empty_model(family, settings, dtype=dtype, attention=attention)
    shares: dict[str, Share] = {}
    if ranks is not None:
        check_divisible(settings, ranks.size)
        shares = shard(model, ranks)
    if numerics == "invariant":
        order_experts(model)
        make_invariant(model)
    if ranks is not None:
        connect(model, ranks)
    model = model.to_empty(device=device).eval().requires_grad_(False)
    filling = Filling(model, shares=shares)
    for source, stored in stored_tensors(weight_files(directory)):
        filling.put(source, stored, family.key_map(source, settings))
    if settings["tie_word_embeddings"]:
        filling.fill_from(HEAD, EMBEDDING)
    filling.check(directory)
    _compute_rotary(model, device)
    return model


def _compute_rotary(model: Any, device: torch.device) -> None:
    """Rotary tables are computed, not stored."""
    rotary: nn.Module = model.model.rotary_emb
    model.model.rotary_emb = type(rotary)(config=model.config).to(device)
