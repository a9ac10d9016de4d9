"""A random target that all decoding tests share."""

from pathlib import Path

import pytest
import torch

from spot.targets.paged import PagedTarget
from tests.twins import write_sdar_twin


@pytest.fixture(scope="session")
def twin_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory in SDAR's layout."""
    return write_sdar_twin(tmp_path_factory.mktemp("twin"))


@pytest.fixture(scope="session")
def twin(twin_path: Path) -> PagedTarget:
    """The loaded target, on one thread."""
    torch.set_num_threads(1)
    return PagedTarget.load(twin_path)
