"""A drafter directory: weights in safetensors, and JSON that says what they were made for.

The description is read without torch. A drafter transfers between targets and block lengths:
another block length is a warning, another format or feature version an error.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

CONFIG = "drafter.json"
WEIGHTS = "drafter.safetensors"
FEATURE_VERSION = 3

if TYPE_CHECKING:
    from torch import nn

Kind = Literal["order", "sets"]


class DrafterError(ValueError):
    """A drafter directory cannot be used; the message names the file and the remedy."""


class OrderModelShape(BaseModel):
    """Sizes of the order model; the defaults are those for real targets (0.62 M parameters)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int = Field(128, ge=8, description="model width")
    layers: int = Field(3, ge=1, description="encoder layers")
    heads: int = Field(8, ge=1, description="attention heads")
    feedforward: int = Field(512, ge=8, description="feed-forward width")


class DrafterConfig(BaseModel):
    """What ``drafter.json`` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["spotbatch-drafter"] = "spotbatch-drafter"
    version: Literal[1] = 1
    kind: Kind = Field(
        "order", description="`order` for the strict rule, `sets` for the threshold rule"
    )
    feature_version: int = FEATURE_VERSION
    shape: OrderModelShape
    block_length: int = Field(description="block length it was trained at (positions)")
    target: str = Field(description="target it was trained on")
    data: str = Field(description="trajectories it was trained on")
    survival: tuple[float, float] = Field(
        (0.0, 1.0),
        description="a, b of sigmoid(a + b * margin): how likely a coupled stale draw survives",
    )
    greedy_survival: tuple[float, float] = Field(
        (0.0, 1.0), description="the same at temperature 0, for the stale best token"
    )
    gamma: float | None = Field(None, description="calibrated mass floor")
    temperature: float = Field(1.0, gt=0, description="divides membership logits (`sets`)")
    bias: float = Field(0.0, description="added to membership logits (`sets`)")


def save_drafter(model: "nn.Module", config: DrafterConfig, directory: Path) -> None:
    """Write weights and description."""
    from safetensors.torch import save_file

    directory.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, directory / WEIGHTS)
    write_config(config, directory)


def write_config(config: DrafterConfig, directory: Path) -> None:
    """Write the description alone."""
    text = json.dumps(config.model_dump(), indent=2, sort_keys=True)
    (directory / CONFIG).write_text(text + "\n", encoding="utf-8")


def load_weights(model: "nn.Module", path: str | Path) -> None:
    """Read a drafter directory's weights into a model that is only used from now on."""
    from safetensors.torch import load_file

    model.load_state_dict(load_file(Path(path) / WEIGHTS))
    model.eval().requires_grad_(False)


def read_config(path: str | Path, *, kind: Kind | None = None) -> DrafterConfig:
    """Read and check ``drafter.json``.

    Raises:
        DrafterError: missing, of another format, feature version or kind.
    """
    file = Path(path) / CONFIG
    if not file.is_file():
        raise DrafterError(
            f"{file} is missing: drafter.path must hold a drafter made by `spotbatch drafter train`"
        )
    try:
        config = DrafterConfig.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DrafterError(
            f"{file} is not a drafter of this format ({where}: {first['msg']}): train it again"
        ) from None
    if config.feature_version != FEATURE_VERSION:
        raise DrafterError(
            f"{file} has feature version {config.feature_version}, this version reads "
            f"{FEATURE_VERSION}: train it again"
        )
    if kind is not None and config.kind != kind:
        raise DrafterError(
            f"{file} is a drafter of kind {config.kind!r}, not {kind!r}: choose the drafter.method "
            "that fits it, or another drafter.path"
        )
    return config


def check_drafter(path: str | Path, block_length: int) -> list[str]:
    """Check a drafter directory against a target's block length; returns warnings.

    Raises:
        DrafterError: the directory cannot be used at all.
    """
    config = read_config(path)
    if not (Path(path) / WEIGHTS).is_file():
        raise DrafterError(f"{Path(path) / WEIGHTS} is missing: train the drafter again")
    if config.block_length == block_length:
        return []
    return [
        f"drafter.path {path} was trained at block length {config.block_length}, the target has "
        f"{block_length}: outputs stay exact, drafts may be worse"
    ]
