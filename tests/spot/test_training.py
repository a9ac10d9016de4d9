"""Training of the order model on orders that are known."""

import numpy as np
import pytest
import torch

from spot.drafters.base import STALE_TOP
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.order_model import OrderModel
from spot.training.evaluate import Accuracy, accuracy_by_depth, mean_accuracy
from spot.training.train import MAX_DEPTH, TrainSettings, split, train_order_model
from spot.training.trajectories import Root, Trajectories, assemble

L, NUM_SAMPLES = 6, 60
SHAPE = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)


def _trajectories() -> Trajectories:
    """Blocks that commit from right to left, while stale confidence says nothing about it."""
    rng = np.random.default_rng(0)
    order = list(range(L))[::-1]
    samples = []
    for number in range(NUM_SAMPLES):
        roots = []
        for step in range(1, L):
            masked = np.zeros(L, bool)
            masked[order[step:]] = True
            logs = -np.sort(rng.uniform(0.1, 9.0, (L, STALE_TOP)))
            roots.append(Root(masked, logs.astype(np.float16), np.log(-logs[:, 0]).astype("f2")))
        samples.append((number, {0: roots}, order))
    return assemble(samples, length=L)


@pytest.fixture(scope="module")
def trained() -> tuple[OrderModel, list[tuple[int, float]]]:
    torch.set_num_threads(1)
    reports: list[tuple[int, float]] = []
    model = train_order_model(
        split(_trajectories())[0],
        shape=SHAPE,
        settings=TrainSettings(steps=200, batch=64, learning_rate=1e-2),
        report=lambda step, loss: reports.append((step, loss)),
    )
    return model, reports


def test_a_learned_order_beats_the_order_of_stale_confidence_clearly(
    trained: tuple[OrderModel, list[tuple[int, float]]],
) -> None:
    order_model, stale = mean_accuracy(accuracy_by_depth(trained[0], split(_trajectories())[1]))
    assert order_model > 0.95
    assert stale < 0.8


def test_the_loss_falls_and_is_reported_every_hundred_steps(
    trained: tuple[OrderModel, list[tuple[int, float]]],
) -> None:
    (first, before), (second, after) = trained[1]
    assert (first, second) == (100, 200)
    assert after < before / 2


def test_training_with_one_seed_gives_one_model() -> None:
    torch.set_num_threads(1)
    settings = TrainSettings(steps=3, batch=8, seed=5)
    one, two = (
        train_order_model(
            _trajectories(), shape=SHAPE, settings=settings, report=lambda step, loss: None
        )
        for _ in range(2)
    )
    for name, weights in one.state_dict().items():
        assert torch.equal(weights, two.state_dict()[name])


def test_every_tenth_sample_is_held_out_whole() -> None:
    everything = _trajectories()
    training, held_out = split(everything)
    assert set(held_out.sample[held_out.block]) == set(range(0, NUM_SAMPLES, 10))
    assert not set(training.block) & set(held_out.block)
    assert len(training.step) + len(held_out.step) == len(everything.step)


def test_accuracy_covers_every_example_of_each_depth() -> None:
    torch.manual_seed(0)
    rows = accuracy_by_depth(OrderModel(SHAPE).eval(), _trajectories())
    # a block of L commits has L - 1 roots, and one example less with each commit of depth
    expected = [NUM_SAMPLES * max(L - 1 - depth, 0) for depth in range(MAX_DEPTH)]
    assert [row.examples for row in rows] == expected


def test_the_only_open_position_is_always_guessed_right() -> None:
    torch.manual_seed(0)
    last = accuracy_by_depth(OrderModel(SHAPE).eval(), _trajectories())[L - 2]
    assert (last.order_model, last.stale_confidence) == (1.0, 1.0)


def test_mean_accuracy_weighs_depths_by_their_examples() -> None:
    rows = [Accuracy(0, 30, 1.0, 0.5), Accuracy(1, 10, 0.0, 0.1), Accuracy(2, 0, 0.0, 0.0)]
    assert list(mean_accuracy(rows)) == pytest.approx([0.75, 0.4])
