"""Small jobs on a random target, with random drafters, for commands that load models."""

from pathlib import Path

import pytest
import torch

import workers.runtime
from spot.drafters.checkpoint import DrafterConfig, Kind, OrderModelShape, save_drafter
from spot.drafters.order_model import OrderModel
from spot.drafters.set_model import SetModel
from tests.jobs.support import write_rows
from tests.twins import BLOCK_LENGTH, write_sdar_twin

NUM_ROWS = 5
TOO_LONG = 1  # the row whose prompt the target cannot take
SHAPE = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
THRESHOLD = ("decode.rule=threshold", "decode.tau=0.3")


def shrink(patch: pytest.MonkeyPatch) -> None:
    """No prefix pages beyond what the batch needs, and no probe before every little job."""
    patch.setattr(workers.runtime, "CACHE_BYTES", 0)
    patch.setattr(workers.runtime, "probe_invariance", lambda target: None)


def write_twin_job(folder: Path) -> Path:
    """A job file with target and prompts."""
    torch.set_num_threads(1)
    write_sdar_twin(folder / "twin")
    rows = [{"prompt": "x" * 300 if i == TOO_LONG else f"say {i}"} for i in range(NUM_ROWS)]
    write_rows(folder / "prompts.jsonl", rows)
    lines = [
        f"input: {{uri: {folder / 'prompts.jsonl'}}}",
        f"target: {{path: {folder / 'twin'}}}",
        f"output: {{uri: {folder / 'out'}}}",
        "decode: {max_tokens: 12, ignore_eos: true}",
    ]
    path = folder / "job.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def write_random_drafter(folder: Path, *, kind: Kind = "order") -> Path:
    """A drafter directory that nobody trained."""
    torch.manual_seed(0)
    model = OrderModel(SHAPE) if kind == "order" else SetModel(SHAPE)
    config = DrafterConfig(
        kind=kind, shape=SHAPE, block_length=BLOCK_LENGTH, target="twin", data="none"
    )
    save_drafter(model, config, folder)
    return folder
