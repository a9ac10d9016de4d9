"""Training and evaluating drafters through the command, on trajectories whose rule is known."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import jobs.drafting
from jobs.drafting import Collection
from jobs.tables import table_lines
from jobs.training import Progress, is_finished
from spot.drafters.checkpoint import WEIGHTS, read_config, write_config
from spot.training.checkpointing import Checkpoints
from spot.training.trajectories import Trajectories
from tests.cli.support import complaint, spotbatch
from tests.spot.known_orders import L, pairs_right_to_left, right_to_left

SMALL = (
    *("--steps", "6", "--batch", "8", "--width", "16", "--layers", "1", "--heads", "2"),
    *("--feedforward", "16", "--threads", "1", "--save-every", "2", "--max-depth", "3"),
)
DATA: dict[str, Callable[[], Trajectories]] = {"order": right_to_left, "sets": pairs_right_to_left}


@pytest.fixture(autouse=True)
def _collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory's name says which trajectories a collect job has committed there."""

    def collection(data: Path) -> Collection:
        rule = "strict" if data.name == "order" else "threshold"
        return Collection(target="t", data="d", rule=rule, trajectories=DATA[data.name]())

    monkeypatch.setattr(jobs.drafting, "collection", collection)


def _train(kind: str, out: Path, *options: str | Path, data: str | None = None) -> Any:
    return spotbatch(
        *("drafter", "train", "--kind", kind, "--data", data or kind, "--out", out),
        *(*SMALL, *options),
    )


def _table(stdout: str) -> list[list[str]]:
    return [line.split() for line in stdout.splitlines()]


kinds = pytest.mark.parametrize("kind", ["order", "sets"])


@kinds
def test_a_trained_directory_says_what_it_is_and_how_good(kind: str, tmp_path: Path) -> None:
    result = _train(kind, tmp_path)
    assert result.exit_code == 0, result.output
    config = read_config(tmp_path)
    assert (config.kind, config.block_length, config.target, config.data) == (kind, L, "t", "d")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("drafter.json", "drafter.safetensors", "training.json")
    ]
    report = json.loads((tmp_path / "training.json").read_text())
    assert report["settings"]["steps"] == 6
    assert len(_table(result.stdout)) == len(report["held_out"]) + 2  # names, and all together
    assert [row["depth"] for row in report["held_out"]][:8] == list(range(8))
    assert sum(row["count"] for row in report["calibration"]) > 0


def test_sets_are_measured_at_two_thresholds(tmp_path: Path) -> None:
    rows = _table(_train("sets", tmp_path).stdout)
    assert rows[0] == ["tau", "depth", "examples", "set", "model", "sets", "stale"]
    assert [row[0] for row in rows[1:]] == ["0.900"] * 8 + ["0.950"] * 8 + ["all"]


def test_a_finished_drafter_is_not_trained_again_unless_forced(tmp_path: Path) -> None:
    _train("order", tmp_path)
    marked = read_config(tmp_path).model_copy(update={"gamma": 0.05})
    write_config(marked, tmp_path)
    result = _train("order", tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "holds a finished drafter; --force trains it again" in result.stderr
    assert read_config(tmp_path).gamma == 0.05
    assert _train("order", tmp_path, "--force").exit_code == 0
    assert read_config(tmp_path).gamma is None


class KilledError(Exception):
    """The training was interrupted."""


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Begin a training and interrupt it after its fifth step."""

    def begin(kind: str, out: Path, *options: str) -> None:
        with monkeypatch.context() as patch:
            original = Checkpoints.after_step

            def after_step(self: Any, run: Any) -> None:
                original(self, run)
                if run.step == 5:
                    raise KilledError

            patch.setattr(Checkpoints, "after_step", after_step)
            with pytest.raises(KilledError):
                _train(kind, out, *options)

    return begin


@kinds
def test_an_interrupted_training_ends_as_if_it_had_not_been(
    kind: str, tmp_path: Path, kill: Callable[..., None]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    whole = _train(kind, one)
    kill(kind, two)
    assert not is_finished(two)
    again = _train(kind, two)
    assert again.stdout == whole.stdout
    for name, weights in load_file(one / WEIGHTS).items():
        assert torch.equal(weights, load_file(two / WEIGHTS)[name]), name
    assert not (two / "training").exists()


def test_an_unfinished_training_with_other_settings_is_refused_unless_forced(
    tmp_path: Path, kill: Callable[..., None]
) -> None:
    kill("order", tmp_path)
    other = ("--learning-rate", "0.01")
    sentence = complaint(_train("order", tmp_path, *other))
    assert "unfinished training with other data or settings" in sentence
    assert sentence.endswith("--force does that")
    assert _train("order", tmp_path, *other, "--force").exit_code == 0
    assert is_finished(tmp_path)


def test_a_forced_training_is_resumed_too(
    tmp_path: Path, kill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    kill("order", tmp_path)
    steps: list[int] = []
    original = Checkpoints.after_step

    def after_step(self: Any, run: Any) -> None:
        steps.append(run.step)
        original(self, run)

    monkeypatch.setattr(Checkpoints, "after_step", after_step)
    _train("order", tmp_path, "--force")
    assert steps == [5, 6]


def test_an_interrupted_training_over_a_finished_drafter_is_unfinished(
    tmp_path: Path, kill: Callable[..., None]
) -> None:
    _train("order", tmp_path)
    kill("order", tmp_path, "--force")
    result = _train("order", tmp_path)
    assert "holds a finished drafter" not in result.stderr
    assert is_finished(tmp_path)


def test_an_order_is_not_learned_from_sets(tmp_path: Path) -> None:
    sentence = complaint(_train("order", tmp_path, data="sets"))
    assert "an order is learned from single commits: train --kind sets" in sentence


@kinds
def test_evaluation_gives_what_training_gave(kind: str, tmp_path: Path) -> None:
    trained = _train(kind, tmp_path)
    found = spotbatch("drafter", "eval", "--data", kind, "--drafter", tmp_path)
    assert found.stdout == trained.stdout
    as_json = spotbatch(
        *("drafter", "eval", "--data", kind, "--drafter", tmp_path, "--json", "--all-samples")
    )
    rows = json.loads(as_json.stdout)
    assert rows[0]["examples"] == len(DATA[kind]().roots())


@pytest.mark.parametrize(("bias", "right"), [(100.0, 0.5), (-100.0, 0.0)])
def test_evaluation_reads_the_calibration_of_a_drafter(
    tmp_path: Path, bias: float, right: float
) -> None:
    _train("sets", tmp_path)
    write_config(read_config(tmp_path).model_copy(update={"bias": bias}), tmp_path)
    result = spotbatch("drafter", "eval", "--data", "sets", "--drafter", tmp_path, "--json")
    # everything that is open passes, which is true of the second of two roots; or nothing does
    assert json.loads(result.stdout)[0]["set_model"] == right


def test_a_directory_that_holds_no_drafter_is_one_sentence(tmp_path: Path) -> None:
    result = spotbatch("drafter", "eval", "--data", "order", "--drafter", tmp_path)
    assert "drafter.json is missing" in complaint(result)


def test_a_calibration_plot_is_drawn_on_demand(tmp_path: Path) -> None:
    result = _train("order", tmp_path / "drafter", "--plots", tmp_path / "plots")
    assert result.exit_code == 0, result.output
    assert "</svg>" in (tmp_path / "plots" / "calibration.svg").read_text()


def test_plots_without_matplotlib_are_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    sentence = complaint(_train("order", tmp_path / "drafter", "--plots", tmp_path / "plots"))
    assert "pip install 'spotbatch[plots]'" in sentence
    assert not (tmp_path / "drafter").exists()


def test_progress_tells_the_seconds_that_are_left() -> None:
    times = iter([10.0, 14.0, 16.0])
    progress = Progress(500, clock=lambda: next(times))
    lines = [progress.line(step, 0.5) for step in (200, 300, 400)]
    assert lines == [
        "step 200 of 500: loss 0.5000",
        "step 300 of 500: loss 0.5000, 8 s left",
        "step 400 of 500: loss 0.5000, 3 s left",
    ]


def test_a_table_aligns_names_and_figures() -> None:
    lines = table_lines([{"long_name": 0.5, "n": 12}, {"long_name": None, "n": "all"}])
    assert lines == ["long name    n", "    0.500   12", "        -  all"]
    assert table_lines([]) == []
