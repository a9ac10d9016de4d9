"""What a model directory says about itself, read without torch.

A family's values come from the registry and the directory may only confirm them: the first
contradiction is an error that names both sides.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spot.targets.claims import Claims, confirm
from spot.targets.families import family_of
from spot.targets.family import Attention, Grid, TargetError
from spot.targets.files import CONFIG, MERGES, SIDE_FILES, TOKENIZER, read_json, weight_files


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
    grid: Grid = "sequence"
    attention: Attention = "block-causal"
    shifted: bool = False

    @property
    def exact_prefix(self) -> bool:
        """Whether keys and values of finished blocks are exact, so that they can be kept."""
        return self.attention == "block-causal"


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
    in_parts = all((directory / name).is_file() for name in MERGES)
    if not (directory / TOKENIZER).is_file() and not in_parts:
        raise TargetError(
            f"{directory / TOKENIZER} is missing, and so is {' or '.join(MERGES)}: save the "
            "tokenizer there"
        )
    side = [directory / name for name in SIDE_FILES if (directory / name).is_file()]
    return side + weight_files(directory)


def read_config(directory: Path) -> dict[str, Any]:
    """The directory's configuration."""
    return read_json(directory / CONFIG)


def spec_of(path: str | Path, *, block_length: int | None = None) -> TargetSpec:
    """Resolve a directory to its specification.

    Args:
        path: the model directory.
        block_length: ``target.block_length`` of the job, for checkpoints that do not say.

    Raises:
        TargetError: the directory contradicts the registry or the job, or says too little.
    """
    directory = Path(path)
    config = read_config(directory)
    family = family_of(config, path=directory / CONFIG)
    for name, value in family.expected.items():
        confirm(directory / CONFIG, config, name, value, of=family)
    said = Claims(directory, config, family)
    names = family.native.settings
    return TargetSpec(
        family=family.name,
        block_length=said.block_length(asked=block_length),
        mask_id=said.mask_id(),
        stop_ids=said.stop_ids(),
        pad_id=said.pad_id(),
        vocab_rows=said.integer(names["vocab_size"]),
        max_positions=said.integer(names["max_position_embeddings"]),
        grid=family.grid,
        attention=family.attention,
        shifted=family.shifted,
    )
