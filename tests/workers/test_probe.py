from pathlib import Path

import pytest
import torch
from torch import Tensor

from spot.attention import KVPages
from spot.targets.base import Unit
from spot.targets.paged import PagedTarget
from tests.twins import write_sdar_twin
from workers.errors import NumericsError
from workers.probe import probe_invariance


class Sociable(PagedTarget):
    """A target whose products depend on how many states share the forward."""

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        return super().hidden(units, pages) * (1.0 + 1e-6 * (len(units) > 8))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_sdar_twin(Path(tmp_path_factory.mktemp("twin")))


def test_a_device_that_keeps_the_promise_passes(directory: Path) -> None:
    probe_invariance(PagedTarget.load(directory))


def test_a_device_that_breaks_it_is_refused_with_the_remedy(directory: Path) -> None:
    with pytest.raises(NumericsError, match=r"set decode\.numerics: fast"):
        probe_invariance(Sociable.load(directory))
