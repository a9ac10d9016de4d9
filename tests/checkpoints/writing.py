"""Writing a checkpoint: configuration, random weights, tokenizer."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.checkpoints.configurations import CONFIGURATIONS
from tests.checkpoints.json_files import write_json
from tests.checkpoints.shapes import SHAPES
from tests.checkpoints.specials import LENGTH, MASKS, FamilyName, VocabularyName, specials_of
from tests.checkpoints.tokenizer_files import write_tokenizer, write_tokenizer_config


def write_released(
    family: FamilyName,
    directory: Path,
    *,
    vocabulary: VocabularyName = "tiny",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    shards: int = 2,
    **sizes: int,
) -> Path:
    """Write a checkpoint; ``sizes`` override entries of its configuration."""
    config = write_configuration(family, directory, vocabulary=vocabulary, **sizes)
    generator = torch.Generator().manual_seed(seed)
    shapes = SHAPES[family](config)
    tensors = {n: _random(n, s, generator).to(dtype) for n, s in shapes.items()}
    _write_weights(directory, tensors, shards=shards)
    write_tokenizer(family, directory, specials_of(family, vocabulary))
    return directory


def write_configuration(
    family: FamilyName, directory: Path, *, vocabulary: VocabularyName = "tiny", **sizes: Any
) -> dict[str, Any]:
    """Write what says what a checkpoint is, without weights and the ordinary vocabulary."""
    directory.mkdir(parents=True, exist_ok=True)
    specials = specials_of(family, vocabulary)
    config = CONFIGURATIONS[family](specials) | sizes
    if vocabulary == "tiny":  # such rows are nobody's, so the checkpoint must say its own
        config |= {"mask_token_id": specials.id_of(MASKS[family])}
        if family in ("sdar", "llada2"):
            config |= {"block_size": LENGTH}
    write_json(directory / "config.json", config)
    end = config["pad_token_id"]
    ends = [specials.id_of("<|im_end|>"), end] if family == "sdar" else end
    generation = {"eos_token_id": ends, "pad_token_id": end}
    write_json(directory / "generation_config.json", generation)
    write_tokenizer_config(family, directory, specials)
    return config


def _random(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Large enough that conditionals are sharp, whatever the width."""
    noise = torch.randn(shape, generator=generator)
    if "norm" in name.rpartition(".weight")[0].rpartition(".")[2] or name.endswith("ln_f.weight"):
        return 1.0 + 0.2 * noise
    if len(shape) == 1:
        return 0.05 * noise
    return 0.85 / math.sqrt(shape[1]) * noise


def _write_weights(directory: Path, tensors: Mapping[str, Tensor], *, shards: int) -> None:
    if shards == 1:
        save_file(dict(tensors), directory / "model.safetensors", metadata={"format": "pt"})
        return
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        mine = names[number * len(names) // shards : (number + 1) * len(names) // shards]
        save_file({n: tensors[n] for n in mine}, directory / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(mine, file)
    total = sum(t.nbytes for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    write_json(directory / "model.safetensors.index.json", index)
