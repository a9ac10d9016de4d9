"""Loading: no more memory than the model and a window, and every tensor where it belongs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from spot.targets.family import Slot, TargetError
from spot.targets.revision import revision_of
from spot.targets.weights import Filling, Share, stored_tensors
from tests.conftest import REPOSITORY
from tests.loading_memory import write_large

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.models
@pytest.mark.parametrize("numerics", ["invariant", "fast"])
def test_loading_takes_at_most_a_fifth_more_memory_than_the_checkpoint(
    tmp_path: Path, numerics: str
) -> None:
    write_large(tmp_path, num_bytes=600 * 2**20)
    done = subprocess.run(
        [sys.executable, "-m", "tests.loading_memory", str(tmp_path), numerics],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 0.9 < json.loads(done.stdout)["ratio"] < 1.2


def test_tensors_come_file_by_file_whatever_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spot.targets.weights.WINDOW_BYTES", 1)
    files = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    save_file({"x": torch.ones(2), "y": torch.zeros(3)}, files[0])
    save_file({"z": torch.full((1,), 7.0)}, files[1])
    found = {name: tensor.tolist() for name, tensor in stored_tensors(files)}
    assert found == {"x": [1.0, 1.0], "y": [0.0] * 3, "z": [7.0]}


def test_a_tensor_that_is_stored_twice_is_refused() -> None:
    filling = Filling(torch.nn.Linear(2, 3), shares={})
    filling.put("one", torch.zeros(3, 2), (Slot(name="weight"),))
    with pytest.raises(TargetError, match="two is stored twice"):
        filling.put("two", torch.zeros(3, 2), (Slot(name="weight"),))


def test_a_half_filled_parameter_is_missing(tmp_path: Path) -> None:
    filling = Filling(torch.nn.Linear(2, 4, bias=False), shares={})
    filling.put("upper", torch.zeros(2, 2), (Slot(name="weight", into=(0, 2)),))
    with pytest.raises(TargetError, match=r"missing weights \['weight'\], unknown weights \[\]"):
        filling.check(tmp_path)


def test_a_rank_takes_its_share_of_rows_or_columns() -> None:
    whole = torch.arange(8.0).view(4, 2)
    assert Share(dim=0, rank=1, size=2).of(whole).tolist() == [[4, 5], [6, 7]]
    assert Share(dim=1, rank=0, size=2).of(whole).tolist() == [[0], [2], [4], [6]]
    assert Share(dim=0, rank=1, size=2).of(whole[:, 0]).tolist() == [4, 6]


def test_a_snapshots_folder_names_its_revision(tmp_path: Path) -> None:
    folder = tmp_path / "models--a--b" / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    assert revision_of(folder) == COMMIT


def test_a_downloads_notes_name_its_revision_if_they_agree(tmp_path: Path) -> None:
    notes = tmp_path / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    assert revision_of(tmp_path) is None
    (notes / "config.json.metadata").write_text(f"{COMMIT}\netag\n1.0\n")
    assert revision_of(tmp_path) == COMMIT
    (notes / "merges.txt.metadata").write_text(f"{COMMIT[::-1]}\netag\n1.0\n")
    assert revision_of(tmp_path) is None
