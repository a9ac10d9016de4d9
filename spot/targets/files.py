"""The files of a model directory, read without torch."""

import json
import re
from pathlib import Path
from typing import Any

from spot.targets.family import TargetError

CONFIG = "config.json"
GENERATION = "generation_config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
MERGES = ("vocab.json", "merges.txt")  # a tokenizer that was saved in parts
SIDE_FILES = (
    CONFIG,
    GENERATION,
    TOKENIZER,
    TOKENIZER_CONFIG,
    *MERGES,
    "added_tokens.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    INDEX,
)
_SHARD = re.compile(r"[\w.-]+\.safetensors")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TargetError(f"{path} is missing: give a complete model directory") from None
    except ValueError as error:
        raise TargetError(f"{path} is not JSON ({error}): download it again") from None
    if not isinstance(value, dict):
        raise TargetError(f"{path} does not hold a JSON object: download it again")
    return value


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files of a model directory, in order."""
    if (directory / INDEX).is_file():
        files = [directory / name for name in _shard_names(directory / INDEX)]
    else:
        files = [directory / SINGLE]
    for file in files:
        if not file.is_file():
            raise TargetError(
                f"{file} is missing: target.path must hold safetensors weights "
                "(other formats are never loaded)"
            )
    return files


def _shard_names(index: Path) -> list[str]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise TargetError(f"{index} has no weight_map: download it again")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if not _SHARD.fullmatch(name):
            raise TargetError(f"{index} names {name!r}, which is no safetensors file beside it")
    return names
