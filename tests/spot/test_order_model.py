import subprocess
import sys
from pathlib import Path

import pytest
import torch

from spot.drafters.checkpoint import (
    CONFIG,
    WEIGHTS,
    DrafterConfig,
    DrafterError,
    OrderModelShape,
    check_drafter,
    save_drafter,
)
from spot.drafters.features import NUM_FEATURES
from spot.drafters.order_model import OrderModel, load_order_model

SMALL = OrderModelShape(width=16, layers=2, heads=2, feedforward=16)


def _saved(folder: Path) -> Path:
    torch.manual_seed(0)
    config = DrafterConfig(shape=SMALL, block_length=8, target="t", data="d")
    save_drafter(OrderModel(SMALL), config, folder)
    return folder


def test_the_default_shape_has_the_papers_size() -> None:
    model = OrderModel(OrderModelShape())
    assert sum(p.numel() for p in model.parameters()) == 621_953


def test_only_open_positions_can_be_chosen_and_only_masked_ones_are_seen() -> None:
    torch.manual_seed(1)
    model, features = OrderModel(SMALL).eval(), torch.randn(1, 6, NUM_FEATURES)
    masked = torch.tensor([[True, True, False, True, False, True]])
    taken = torch.tensor([[False, True, False, False, False, False]])
    found = model(features, masked=masked, taken=taken)
    assert torch.isneginf(found[0]).tolist() == [False, True, True, False, True, False]
    assert found.exp().sum().item() == pytest.approx(1.0)
    features[0, 2] += 9.0
    assert torch.equal(model(features, masked=masked, taken=taken), found)


def test_a_saved_model_gives_the_same_scores(tmp_path: Path) -> None:
    model, config = load_order_model(_saved(tmp_path / "drafter"))
    torch.manual_seed(0)
    again = OrderModel(SMALL).eval()
    features, open_ = torch.randn(2, 8, NUM_FEATURES), torch.ones(2, 8, dtype=torch.bool)
    assert config.block_length == 8
    assert torch.equal(
        model(features, masked=open_, taken=~open_), again(features, masked=open_, taken=~open_)
    )


def test_another_block_length_is_a_warning(tmp_path: Path) -> None:
    folder = _saved(tmp_path / "drafter")
    assert check_drafter(folder, 8) == []
    (warning,) = check_drafter(folder, 32)
    assert "trained at block length 8, the target has 32" in warning


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"spotbatch-drafter"', '"other"', "not a drafter of this format"),
        ('"feature_version": 3', '"feature_version": 9', "has feature version 9"),
    ],
)
def test_another_format_is_an_error(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = _saved(tmp_path / "drafter") / CONFIG
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DrafterError, match=sentence):
        check_drafter(path.parent, 8)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = _saved(tmp_path / "drafter")
    (folder / name).unlink()
    with pytest.raises(DrafterError, match=name):
        check_drafter(folder, 8)


def test_checking_a_directory_needs_no_torch() -> None:
    names = "spot.drafters.checkpoint, spot.targets.checkpoint"
    code = f"import sys, {names}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
