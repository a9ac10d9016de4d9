"""A workload of the bundled target, random drafters and short samples."""

from pathlib import Path

import pytest

from benchmarks.workload import Workload
from tests.benchmarks.builders import write_drafters


@pytest.fixture(scope="session")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    """Two prompts of at most 32 output tokens."""
    folder = tmp_path_factory.mktemp("drafters")
    write_drafters(folder)
    return Workload(
        drafter=folder / "drafter",
        sets=folder / "sets",
        spiffy=folder / "spiffy",
        num_prompts=2,
        max_tokens=32,
    )


@pytest.fixture(scope="session")
def controls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draft-free trajectories, shared by all tests."""
    return tmp_path_factory.mktemp("controls")
