"""From a model directory to a loaded target."""

from pathlib import Path

from spot.targets.checkpoint import spec_of
from spot.targets.sdar import SdarTarget

FAMILIES = {"sdar": SdarTarget}


def load_target(
    path: str | Path, *, block_length: int | None = None, numerics: str = "invariant"
) -> SdarTarget:
    """Load a target through its family's adapter."""
    family = spec_of(path, block_length=block_length).family
    return FAMILIES[family](path, block_length=block_length, numerics=numerics)
