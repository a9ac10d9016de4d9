"""A training that can stop anywhere: its whole mutable state, and the way to disk and back.

A resumed training ends in the same weights, bit for bit, as one that was never interrupted. Tensors
are stored as safetensors, everything else as JSON; the JSON is written last and names the tensors'
file, so that it never describes half of a state.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

STATE = "state.json"
WEIGHT_DECAY = 0.01
WARM_UP = 0.05  # share of the steps in which the learning rate rises
SHORT_WARM_UP = 0.3  # the same, of trainings that are too short for that

Model = TypeVar("Model", bound=nn.Module)


class CheckpointError(ValueError):
    """A stored training state cannot be used; the message names the file and the remedy."""


@dataclass(slots=True, kw_only=True)
class TrainingRun(Generic[Model]):
    """All that a training step reads and changes."""

    model: Model
    optimizer: torch.optim.AdamW
    schedule: torch.optim.lr_scheduler.OneCycleLR
    generators: dict[str, np.random.Generator]
    step: int = 0
    losses: list[float] = field(default_factory=list)  # since the last report

    @classmethod
    def start(
        cls,
        model: Model,
        *,
        steps: int,
        learning_rate: float,
        generators: dict[str, np.random.Generator],
    ) -> "TrainingRun[Model]":
        """Before the first step."""
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=learning_rate, weight_decay=WEIGHT_DECAY
        )
        # So short a warm-up would have one step, by whose zero length the schedule divides.
        warm_up = WARM_UP if steps > 1 / WARM_UP else SHORT_WARM_UP
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=learning_rate, total_steps=steps, pct_start=warm_up
        )
        return cls(model=model, optimizer=optimizer, schedule=schedule, generators=generators)

    def descend(self, loss: Tensor) -> None:
        """One step along the gradient of a loss."""
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        self.losses.append(loss.item())

    def tensors(self) -> dict[str, Tensor]:
        """Weights and the optimizer's moments."""
        found = {f"model.{name}": t for name, t in self.model.state_dict().items()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            found |= {f"optimizer.{index}.{name}": t for name, t in moments.items()}
        return {name: tensor.contiguous() for name, tensor in found.items()}

    def numbers(self) -> dict[str, Any]:
        """Everything else, as JSON takes it."""
        return {
            "step": self.step,
            "losses": self.losses,
            "optimizer": self.optimizer.state_dict()["param_groups"],
            "schedule": self.schedule.state_dict(),
            "generators": {n: g.bit_generator.state for n, g in self.generators.items()},
        }

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Become the run that ``tensors`` and ``numbers`` are of."""
        moments: dict[int, dict[str, Tensor]] = {}
        weights: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            if part == "model":
                weights[rest] = tensor
            else:
                index, _, moment = rest.partition(".")
                moments.setdefault(int(index), {})[moment] = tensor
        self.model.load_state_dict(weights)
        self.optimizer.load_state_dict({"state": moments, "param_groups": numbers["optimizer"]})
        self.schedule.load_state_dict(numbers["schedule"])
        for name, generator in self.generators.items():
            generator.bit_generator.state = numbers["generators"][name]
        self.step, self.losses = numbers["step"], list(numbers["losses"])


class Checkpoints:
    """Where an unfinished training is kept, every ``every`` steps."""

    def __init__(self, directory: Path, *, identity: Mapping[str, Any], every: int) -> None:
        """``identity`` says what the training is; a state of another one is never resumed."""
        self._directory, self._every = directory, every
        self._identity = json.loads(json.dumps(identity))

    def usable(self) -> bool:
        """Whether nothing is stored, or a state of this very training."""
        try:
            stored = self._stored()
        except CheckpointError:
            return False
        return stored is None or stored["identity"] == self._identity

    def resume(self, run: TrainingRun[Any]) -> None:
        """Put a fresh run where the stored one stopped, if there is one.

        Raises:
            CheckpointError: what is stored belongs to another training, or is damaged.
        """
        stored = self._stored()
        if stored is None:
            return
        if stored["identity"] != self._identity:
            raise CheckpointError(
                f"{self._directory} holds an unfinished training with other data or settings: "
                "repeat those, choose another directory, or remove it"
            )
        run.restore(self._tensors(stored["tensors"]), stored["numbers"])

    def _stored(self) -> dict[str, Any] | None:
        path = self._directory / STATE
        if not path.is_file():
            return None
        try:
            stored = json.loads(path.read_bytes())
        except ValueError as error:
            raise self._damaged(STATE, error) from None
        if not isinstance(stored, dict) or set(stored) != {"identity", "tensors", "numbers"}:
            raise self._damaged(STATE, ValueError("it is no training state"))
        return stored

    def _tensors(self, name: str) -> dict[str, Tensor]:
        try:
            return dict(load_file(self._directory / name))
        except (OSError, SafetensorError) as error:
            raise self._damaged(name, error) from None

    def _damaged(self, name: str, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{self._directory / name} cannot be read ({error}): remove {self._directory} to "
            "train from the start"
        )

    def after_step(self, run: TrainingRun[Any]) -> None:
        """Keep the run, if it is time."""
        if run.step % self._every == 0:
            self.save(run)

    def save(self, run: TrainingRun[Any]) -> None:
        """Keep the run in place of what was kept before."""
        self._directory.mkdir(parents=True, exist_ok=True)
        before = set(self._directory.glob("step-*.safetensors"))
        tensors = self._directory / f"step-{run.step:08d}.safetensors"
        partial = self._directory / "partial"
        save_file(run.tensors(), partial)
        partial.replace(tensors)
        stored = {"identity": self._identity, "tensors": tensors.name, "numbers": run.numbers()}
        partial.write_text(json.dumps(stored), encoding="utf-8")
        partial.replace(self._directory / STATE)
        for path in before - {tensors}:
            path.unlink()

    def remove(self) -> None:
        """Nothing is left to resume."""
        if not self._directory.is_dir():
            return
        (self._directory / STATE).unlink(missing_ok=True)
        for path in [*self._directory.glob("step-*.safetensors"), self._directory / "partial"]:
            path.unlink(missing_ok=True)
        self._directory.rmdir()
