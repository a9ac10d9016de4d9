"""From a model directory to a target."""

from pathlib import Path
from typing import Unpack

from spot.targets.canvas import NativeCanvasTarget
from spot.targets.loading import Loaded, Options, load
from spot.targets.paged import PagedTarget


def load_target(path: str | Path, **options: Unpack[Options]) -> PagedTarget | NativeCanvasTarget:
    """Load a target of any family; arguments and errors are those of ``loading.load``."""
    return target_of(load(path, **options))


def target_of(loaded: Loaded) -> PagedTarget | NativeCanvasTarget:
    """The target of what was loaded."""
    return PagedTarget(loaded) if loaded.spec.exact_prefix else NativeCanvasTarget(loaded)
