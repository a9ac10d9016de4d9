"""What a model directory says about itself, read without torch.

The registry supplies a family's values; the checkpoint may only confirm them. Dispatch is on
``architectures``: `model_type` values are shared by different architectures.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
SDAR = "SDARForCausalLM"

# SDAR's published checkpoints: vocabulary rows and the values that go with them.
SDAR_VOCAB_ROWS = 151936
SDAR_MASK_ID = 151669
SDAR_STOP_IDS = (151645, 151643)
SDAR_PAD_ID = 151643


class TargetError(ValueError):
    """A model directory cannot be used; the message names the file and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSpec:
    """Everything that decoding needs to know about a target beside its weights."""

    family: str
    block_length: int
    mask_id: int
    stop_ids: tuple[int, ...]
    pad_id: int
    vocab_rows: int
    max_positions: int


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
        names = sorted(set(read_json(directory / INDEX).get("weight_map", {}).values()))
        files = [directory / name for name in names]
    else:
        files = [directory / SINGLE]
    for file in files:
        if not file.is_file():
            raise TargetError(
                f"{file} is missing: target.path must hold safetensors weights "
                "(other formats are never loaded)"
            )
    return files


def inspect_directory(path: str | Path, *, block_length: int | None = None) -> list[Path]:
    """The files that define a target, for identity in the plan.

    Raises:
        TargetError: the directory, its configuration, tokenizer or weights are missing or are not
            of a supported family.
    """
    directory = Path(path)
    if not directory.is_dir():
        raise TargetError(f"target.path {directory} is not a directory: give a model directory")
    spec_of(directory, block_length=block_length)
    if not (directory / "tokenizer.json").is_file():
        raise TargetError(f"{directory / 'tokenizer.json'} is missing: save the tokenizer there")
    side = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
    extra = [directory / n for n in (*side, "chat_template.jinja") if (directory / n).is_file()]
    return extra + weight_files(directory)


def spec_of(path: str | Path, *, block_length: int | None = None) -> TargetSpec:
    """Resolve a directory to its specification.

    Args:
        path: the model directory.
        block_length: ``target.block_length`` of the job, for checkpoints that do not say.
    """
    directory = Path(path)
    config = read_json(directory / CONFIG)
    if config.get("architectures") != [SDAR]:
        raise TargetError(
            f"{directory / CONFIG} names architectures {config.get('architectures')}: "
            f"this version supports {SDAR}"
        )
    known = config.get("vocab_size") == SDAR_VOCAB_ROWS
    return TargetSpec(
        family="sdar",
        block_length=_block_length(directory, config, asked=block_length),
        mask_id=_mask_id(directory, config, known=known),
        stop_ids=SDAR_STOP_IDS if known else _stop_ids(directory, config),
        pad_id=SDAR_PAD_ID if known else _integer(directory, config, "pad_token_id"),
        vocab_rows=_integer(directory, config, "vocab_size"),
        max_positions=_integer(directory, config, "max_position_embeddings"),
    )


def _integer(directory: Path, config: dict[str, Any], name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TargetError(f"{directory / CONFIG} has no whole number {name}: add it")
    return value


def _block_length(directory: Path, config: dict[str, Any], *, asked: int | None) -> int:
    said = config.get("block_size")
    if said is None and asked is None:
        raise TargetError(
            f"{directory / CONFIG} does not say its block length: set target.block_length "
            "(it is part of the checkpoint's name, as in -b32)"
        )
    if said is not None and asked is not None and said != asked:
        raise TargetError(
            f"target.block_length is {asked} but {directory / CONFIG} says block_size {said}: "
            "remove the setting"
        )
    return asked or _integer(directory, config, "block_size")


def _mask_id(directory: Path, config: dict[str, Any], *, known: bool) -> int:
    if not known:
        return _integer(directory, config, "mask_token_id")
    said = config.get("mask_token_id", SDAR_MASK_ID)
    if said != SDAR_MASK_ID:
        raise TargetError(
            f"{directory / CONFIG} says mask_token_id {said} but SDAR's is {SDAR_MASK_ID}: "
            "correct the file"
        )
    return SDAR_MASK_ID


def _stop_ids(directory: Path, config: dict[str, Any]) -> tuple[int, ...]:
    path = directory / "generation_config.json"
    said = (read_json(path) if path.is_file() else config).get("eos_token_id")
    ids = tuple(said) if isinstance(said, list) else (said,)
    if not ids or not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
        raise TargetError(f"{path} has no eos_token_id: add the stop ids")
    return ids
