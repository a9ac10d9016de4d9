"""An order model drafts for targets that it never saw, and changes nothing."""

from pathlib import Path

import pytest
import torch

from tests.checkpoints import FAMILY_NAMES, FamilyName
from tests.transfer import measure


@pytest.mark.models
@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_the_bundled_order_model_saves_forwards_of_every_family_and_changes_nothing(
    tmp_path: Path, family: FamilyName
) -> None:
    torch.set_num_threads(1)
    for row in measure(family, tmp_path, num_samples=2, max_tokens=16):
        assert row.identical
        assert row.nfe < row.transitions
