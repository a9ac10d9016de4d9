"""Training of drafters on orders that are known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import spot.training.train
from spot.drafters.base import STALE_TOP
from spot.drafters.order_model import OrderModel
from spot.drafters.set_model import SetModel
from spot.drafters.sets import SetCalibration
from spot.training.calibrate import Reliability
from spot.training.checkpointing import CheckpointError, Checkpoints
from spot.training.evaluate import (
    Accuracy,
    accuracy_by_depth,
    mean_accuracy,
    mean_set_accuracy,
    set_accuracy_by_depth,
)
from spot.training.train import (
    SHALLOW,
    TrainSettings,
    inputs,
    split,
    train_order_model,
    train_set_model,
)
from spot.training.trajectories import Trajectories, examples_at
from tests.spot.known_orders import NUM_SAMPLES, SHAPE, L, pairs_right_to_left, right_to_left

SHORT = TrainSettings(steps=9, batch=8, seed=5)

Train = Callable[..., nn.Module]
KINDS = [(train_order_model, right_to_left), (train_set_model, pairs_right_to_left)]
both_kinds = pytest.mark.parametrize(("train", "data"), KINDS, ids=["order", "sets"])


@pytest.fixture(scope="module")
def trained() -> tuple[OrderModel, list[tuple[int, float]]]:
    torch.set_num_threads(1)
    reports: list[tuple[int, float]] = []
    model = train_order_model(
        split(right_to_left())[0],
        shape=SHAPE,
        settings=TrainSettings(steps=200, batch=64, learning_rate=1e-2),
        report=lambda step, loss: reports.append((step, loss)),
    )
    return model, reports


@pytest.fixture(scope="module")
def trained_sets() -> SetModel:
    torch.set_num_threads(1)
    return train_set_model(
        split(pairs_right_to_left())[0],
        shape=SHAPE,
        settings=TrainSettings(steps=300, batch=64, learning_rate=1e-2, max_depth=3),
        report=lambda step, loss: None,
    )


def _assert_bit_equal(one: nn.Module, two: nn.Module) -> None:
    for name, weights in one.state_dict().items():
        assert torch.equal(weights, two.state_dict()[name]), name


def test_a_learned_order_beats_the_order_of_stale_confidence_clearly(
    trained: tuple[OrderModel, list[tuple[int, float]]],
) -> None:
    order_model, stale = mean_accuracy(accuracy_by_depth(trained[0], split(right_to_left())[1]))
    assert order_model > 0.95
    assert stale < 0.8


def test_learned_sets_are_right_as_a_whole_where_stale_confidence_fails(
    trained_sets: SetModel,
) -> None:
    rows = set_accuracy_by_depth(trained_sets, split(pairs_right_to_left())[1])
    set_model, stale = mean_set_accuracy(rows)
    assert set_model > 0.9
    assert stale < 0.1


def test_the_loss_falls_and_is_reported_every_hundred_steps(
    trained: tuple[OrderModel, list[tuple[int, float]]],
) -> None:
    (first, before), (second, after) = trained[1]
    assert (first, second) == (100, 200)
    assert after < before / 2


class InterruptedTrainingError(Exception):
    """Training was killed."""


class Killer(Checkpoints):
    """Checkpoints that interrupt the training after a step, whether it was kept or not."""

    def __init__(self, *args: Any, dies_after: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._dies_after = dies_after

    def after_step(self, run: Any) -> None:
        super().after_step(run)
        if run.step == self._dies_after:
            raise InterruptedTrainingError


def _train(train: Train, data: Trajectories, checkpoints: Checkpoints | None = None) -> nn.Module:
    torch.set_num_threads(1)
    return train(
        data,
        shape=SHAPE,
        settings=SHORT,
        report=lambda step, loss: None,
        checkpoints=checkpoints,
    )


@both_kinds
def test_training_with_one_seed_gives_one_model(
    train: Train, data: Callable[[], Trajectories]
) -> None:
    _assert_bit_equal(_train(train, data()), _train(train, data()))


@both_kinds
def test_a_resumed_training_gives_the_weights_of_an_uninterrupted_one(
    train: Train, data: Callable[[], Trajectories], tmp_path: Path
) -> None:
    for dies_after in (4, 7):  # between two checkpoints, and resumed twice
        killer = Killer(tmp_path, identity={}, every=3, dies_after=dies_after)
        with pytest.raises(InterruptedTrainingError):
            _train(train, data(), killer)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state.json", "step-00000006.safetensors"]
    resumed = _train(train, data(), Checkpoints(tmp_path, identity={}, every=3))
    _assert_bit_equal(resumed, _train(train, data()))


def test_a_resumed_training_does_not_begin_again(tmp_path: Path) -> None:
    _train(train_order_model, right_to_left(), Checkpoints(tmp_path, identity={}, every=9))
    killer = Killer(tmp_path, identity={}, every=9, dies_after=1)
    _train(train_order_model, right_to_left(), killer)  # never comes by its first step


@pytest.mark.parametrize("steps", [2, 20, 21])
def test_a_short_training_warms_up_too(steps: int) -> None:
    model = train_order_model(
        right_to_left(),
        shape=SHAPE,
        settings=TrainSettings(steps=steps, batch=2),
        report=lambda step, loss: None,
    )
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_a_batch_of_nothing_but_depths_past_their_blocks_is_drawn_again() -> None:
    settings = TrainSettings(steps=9, batch=1)
    for train, data in KINDS:
        model = train(data(), shape=SHAPE, settings=settings, report=lambda step, loss: None)
        assert all(weights.isfinite().all() for weights in model.state_dict().values())


def test_the_mean_loss_that_is_reported_survives_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spot.training.train, "REPORT_EVERY", 10)
    settings = TrainSettings(steps=10, batch=8)
    reports: list[tuple[int, float]] = []

    def train(checkpoints: Checkpoints | None) -> None:
        torch.set_num_threads(1)
        train_order_model(
            right_to_left(),
            shape=SHAPE,
            settings=settings,
            report=lambda step, loss: reports.append((step, loss)),
            checkpoints=checkpoints,
        )

    train(None)
    with pytest.raises(InterruptedTrainingError):
        train(Killer(tmp_path, identity={}, every=5, dies_after=6))
    train(Checkpoints(tmp_path, identity={}, every=5))
    assert len(reports) == 2
    assert reports[0] == reports[1]


def test_a_training_with_other_settings_is_not_resumed(tmp_path: Path) -> None:
    _train(train_order_model, right_to_left(), Checkpoints(tmp_path, identity={"a": 1}, every=3))
    other = Checkpoints(tmp_path, identity={"a": 2}, every=3)
    assert not other.usable()
    with pytest.raises(CheckpointError, match="unfinished training with other data or settings"):
        _train(train_order_model, right_to_left(), other)


@pytest.mark.parametrize("name", ["state.json", "step-00000009.safetensors"])
def test_a_damaged_training_state_is_named(tmp_path: Path, name: str) -> None:
    checkpoints = Checkpoints(tmp_path, identity={}, every=3)
    _train(train_order_model, right_to_left(), checkpoints)
    (tmp_path / name).write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match=rf"{name} cannot be read .*: remove {tmp_path}"):
        _train(train_order_model, right_to_left(), checkpoints)


def test_removed_checkpoints_leave_nothing(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "training", identity={}, every=3)
    checkpoints.remove()
    _train(train_order_model, right_to_left(), checkpoints)
    checkpoints.remove()
    assert list(tmp_path.iterdir()) == []


def test_every_tenth_sample_is_held_out_whole() -> None:
    everything = right_to_left()
    training, held_out = split(everything)
    assert set(held_out.sample[held_out.block]) == set(range(0, NUM_SAMPLES, 10))
    assert not set(training.block) & set(held_out.block)
    assert len(training.step) + len(held_out.step) == len(everything.step)


def test_a_root_is_described_by_the_conditionals_of_the_state_before_it() -> None:
    found = right_to_left()
    roots = found.roots()
    examples = examples_at(found, roots, np.zeros(len(roots), np.int64))
    features, _, masked, _ = inputs(found, examples)
    stale = torch.from_numpy(found.log_probs[roots - 1]).float().exp()
    assert torch.equal(features[..., :STALE_TOP][masked], stale[masked])


def test_accuracy_covers_every_example_of_each_depth() -> None:
    torch.manual_seed(0)
    rows = accuracy_by_depth(OrderModel(SHAPE).eval(), right_to_left())
    # a block of L commits has L - 1 roots, and one example less with each commit of depth
    expected = [NUM_SAMPLES * max(L - 1 - depth, 0) for depth in range(SHALLOW)]
    assert [row.examples for row in rows] == expected


def test_set_accuracy_covers_every_example_of_each_tau_and_depth() -> None:
    torch.manual_seed(0)
    rows = set_accuracy_by_depth(SetModel(SHAPE).eval(), pairs_right_to_left(), taus=(0.5, 0.9))
    expected = [NUM_SAMPLES * max(L // 2 - 1 - depth, 0) for depth in range(SHALLOW)]
    for tau in (0.5, 0.9):
        assert [row.examples for row in rows if row.tau == tau] == expected


def test_the_only_open_position_is_always_guessed_right() -> None:
    torch.manual_seed(0)
    last = accuracy_by_depth(OrderModel(SHAPE).eval(), right_to_left())[L - 2]
    assert (last.order_model, last.stale_confidence) == (1.0, 1.0)


def test_a_calibration_changes_which_sets_are_likeliest(trained_sets: SetModel) -> None:
    held_out = split(pairs_right_to_left())[1]
    never = SetCalibration(bias=-100.0)  # nothing passes: only single positions are proposed
    rows = set_accuracy_by_depth(trained_sets, held_out, calibration=never)
    assert mean_set_accuracy(rows)[0] == 0.0


def test_probabilities_of_the_guesses_are_gathered(
    trained: tuple[OrderModel, list[tuple[int, float]]], trained_sets: SetModel
) -> None:
    orders, sets = Reliability(), Reliability()
    rows = accuracy_by_depth(trained[0], split(right_to_left())[1], reliability=orders)
    assert sum(row["count"] for row in orders.rows()) == sum(row.examples for row in rows)
    set_accuracy_by_depth(trained_sets, split(pairs_right_to_left())[1], reliability=sets)
    assert orders.error() < 0.1
    assert sets.error() < 0.1


def test_mean_accuracy_weighs_depths_by_their_examples() -> None:
    rows = [Accuracy(0, 30, 1.0, 0.5), Accuracy(1, 10, 0.0, 0.1), Accuracy(2, 0, 0.0, 0.0)]
    assert list(mean_accuracy(rows)) == pytest.approx([0.75, 0.4])
