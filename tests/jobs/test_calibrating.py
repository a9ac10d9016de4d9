"""Calibrating and diagnosing drafters in process, on a random target."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import jobs.mass_floor
import jobs.measuring
from jobs.calibrating import METHODS, CalibrationMethod, calibrate
from jobs.diagnosing import Diagnosis, diagnose
from jobs.errors import JobError
from jobs.in_process import Decoding, InProcess
from jobs.job_file import load_job
from jobs.measuring import CalibrationRequest
from jobs.partial import PartialResults
from manifests.errors import InputError
from manifests.job import JobSpec
from spot.drafters.checkpoint import read_config
from spot.drafters.spiffy_graph import read_graph
from tests.jobs.twin_jobs import (
    NUM_ROWS,
    THRESHOLD,
    TOO_LONG,
    shrink,
    write_random_drafter,
    write_twin_job,
)
from tests.twins import BLOCK_LENGTH


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)
    monkeypatch.setattr(jobs.measuring, "GROUP", 2)
    monkeypatch.setattr(jobs.mass_floor, "GAMMAS", (0.0, 0.1))
    monkeypatch.setattr(jobs.mass_floor, "GAMMA_BUDGETS", (2, 4))


@pytest.fixture(scope="module")
def job_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_twin_job(Path(tmp_path_factory.mktemp("job")))


@pytest.fixture
def order(tmp_path: Path) -> Path:
    return write_random_drafter(tmp_path / "order")


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    return write_random_drafter(tmp_path / "sets", kind="sets")


def _request(job_file: Path, drafter: Path, *settings: str, **options: Any) -> CalibrationRequest:
    options.setdefault("samples", 3)
    options.setdefault("report", lambda line: None)
    return CalibrationRequest(job=load_job(job_file, settings), drafter=drafter, **options)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[JobSpec, list[int], int]]:
    """Job, rows and budget of every decoding; each draft of the budget makes it faster."""
    calls: list[tuple[JobSpec, list[int], int]] = []
    original = InProcess.decode

    def spy(self: InProcess, job: JobSpec, requests: Any, **options: Any) -> Decoding:
        budget = options.get("budget", 0)
        found = original(self, job, requests, **options)
        calls.append((job, [r.row for r in requests], budget))
        return Decoding(results=found.results, seconds=1.0 / (1 + budget))

    monkeypatch.setattr(InProcess, "decode", spy)
    return calls


def test_survival_is_fitted_at_both_temperatures(
    job_file: Path, order: Path, decoded: list[tuple[JobSpec, list[int], int]]
) -> None:
    request = _request(job_file, order, "decode.temperature=0.7", "decode.top_p=0.9")
    rows = calibrate("survival", request)
    assert [row["constants"] for row in rows] == ["greedy_survival", "survival"]
    assert [call[0].decode.temperature for call in decoded] == [0.0, 0.0, 1.0, 1.0]
    config = read_config(order)
    for row in rows:
        assert getattr(config, row["constants"]) == (row["offset"], row["slope"])
        assert row["observations"] > 30
        assert row["error_after"] < max(row["error_before"], 0.1)
    assert (config.gamma, config.temperature) == (None, 1.0)


def test_sets_are_calibrated_at_the_jobs_tau(job_file: Path, sets: Path) -> None:
    (row,) = calibrate("sets", _request(job_file, sets, *THRESHOLD))
    config = read_config(sets)
    assert (config.temperature, config.bias) == (row["temperature"], row["bias"])
    assert row["constants"] == "membership at tau 0.3"
    assert row["error_after"] < row["error_before"]


def test_a_spiffy_graph_needs_no_drafter(job_file: Path, tmp_path: Path) -> None:
    request = _request(job_file, tmp_path / "spiffy", lookahead=2, size=5)
    rows = calibrate("spiffy", request)
    graph = read_graph(tmp_path / "spiffy")
    assert (graph.block_length, graph.target, graph.data) == (BLOCK_LENGTH, "twin", "prompts.jsonl")
    assert len(rows) == len(graph.nodes) == 5
    assert max(graph.depths()) <= 2


def test_the_floor_with_the_best_throughput_is_chosen(
    job_file: Path, order: Path, decoded: list[tuple[JobSpec, list[int], int]]
) -> None:
    request = _request(job_file, order, "decode.temperature=1.0", samples=1)
    rows = calibrate("gamma", request)
    assert [(row["gamma"], row["budget"]) for row in rows] == [
        *((0.0, 2), (0.0, 4), (0.1, 2), (0.1, 4))
    ]
    assert [row["throughput_ratio"] for row in rows] == pytest.approx([3.0, 5.0, 3.0, 5.0])
    assert [row["mean_ratio"] for row in rows] == pytest.approx([4.0] * 4)
    assert read_config(order).gamma == 0.0  # as good as the other, and smaller
    assert [row["chosen"] for row in rows] == [True, True, False, False]
    for job, _, _ in decoded:
        assert (job.cluster.batch, job.decode.temperature, job.decode.padded) == (1, 0.0, False)
    # a row to warm up, the control, and the grid
    assert [budget for _, _, budget in decoded] == [0, 0, 2, 4, 2, 4]


class KilledError(Exception):
    """The measurement was interrupted."""


def _kill_at(line: int) -> Any:
    lines = count(1)

    def report(text: str) -> None:
        if next(lines) == line:
            raise KilledError

    return report


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_calibration_goes_on_with_the_rest(
    job_file: Path,
    tmp_path: Path,
    method: CalibrationMethod,
    decoded: list[tuple[JobSpec, list[int], int]],
) -> None:
    settings = THRESHOLD if method == "sets" else ()
    samples = 1 if method == "gamma" else 4
    kind: Any = "sets" if method == "sets" else "order"
    one, two = (write_random_drafter(tmp_path / name, kind=kind) for name in ("one", "two"))
    whole = calibrate(method, _request(job_file, one, *settings, samples=samples))
    num_decodings = len(decoded)
    decoded.clear()
    with pytest.raises(KilledError):
        calibrate(method, _request(job_file, two, *settings, samples=samples, report=_kill_at(1)))
    again = calibrate(method, _request(job_file, two, *settings, samples=samples))
    assert again == whole
    warming = 2 if method == "gamma" else 0  # each process measures its own control
    assert len(decoded) == num_decodings + warming
    files = {p.name for p in (two / "calibration").iterdir()}
    assert files == {f"{method}.json"}
    assert json.loads((two / "calibration" / f"{method}.json").read_text()) == json.loads(
        json.dumps(whole)
    )


def test_partial_results_of_other_settings_are_measured_again(
    job_file: Path, order: Path, decoded: list[tuple[JobSpec, list[int], int]]
) -> None:
    with pytest.raises(KilledError):
        calibrate("survival", _request(job_file, order, report=_kill_at(1)))
    decoded.clear()
    calibrate("survival", _request(job_file, order, "decode.max_tokens=8"))
    assert [rows for _, rows, _ in decoded] == [[0, 2], [3], [0, 2], [3]]


def test_partial_results_are_kept_and_dropped_by_identity(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    PartialResults(path, identity={"a": (1, 2)}).put("x", [1])
    assert PartialResults(path, identity={"a": [1, 2]}).get("x") == [1]
    assert PartialResults(path, identity={"a": [1]}).get("x") is None
    path.write_text("half a fi")
    assert PartialResults(path, identity={"a": [1, 2]}).get("x") is None


def test_rows_that_cannot_be_decoded_are_passed_over(job_file: Path) -> None:
    decoder = InProcess(load_job(job_file), samples=10)
    assert [r.row for r in decoder.requests] == [r for r in range(NUM_ROWS) if r != TOO_LONG]
    assert [r.row for r in InProcess(load_job(job_file), samples=2).requests] == [0, 2]


def test_held_out_rows_are_every_tenth(job_file: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "many.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"say {i}"}) + "\n" for i in range(25)))
    job = load_job(job_file, (f"input.uri={prompts}",))
    decoder = InProcess(job, samples=10, held_out=True)
    assert [r.row for r in decoder.requests] == [0, 10, 20]


def test_a_sample_has_one_key_whatever_is_decoded_beside_it(job_file: Path) -> None:
    keys = [r.key for r in InProcess(load_job(job_file), samples=10).requests]
    assert len(set(keys)) == len(keys)
    assert [r.key for r in InProcess(load_job(job_file), samples=2).requests] == keys[:2]


@pytest.mark.parametrize(
    ("method", "kind", "settings", "sentence"),
    [
        ("sets", "sets", (), "calibrated under decode.rule threshold"),
        ("sets", "order", THRESHOLD, "is a drafter of kind 'order', not 'sets'"),
        ("gamma", "sets", (), "drafter.method spot_sets proposes sets"),
        ("survival", "order", ("decode.max_tokens=250",), "no row can be decoded here"),
    ],
)
def test_what_cannot_be_calibrated_is_one_sentence(
    job_file: Path,
    tmp_path: Path,
    method: CalibrationMethod,
    kind: Any,
    settings: tuple[str, ...],
    sentence: str,
) -> None:
    drafter = write_random_drafter(tmp_path / "drafter", kind=kind)
    with pytest.raises(JobError, match=sentence):
        calibrate(method, _request(job_file, drafter, *settings))


def test_a_missing_input_is_told_in_its_own_words(job_file: Path, order: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        calibrate("survival", _request(job_file, order, "input.uri=nowhere.jsonl"))


def _diagnosis(job_file: Path, *settings: str) -> dict[str, Any]:
    request = Diagnosis(job=load_job(job_file, settings), samples=3, report=lambda line: None)
    return diagnose(request)


@pytest.fixture(params=["order", "sets", "chain"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """A job's drafter, and the rule that it drafts for."""
    if request.param == "chain":
        yield ("drafter.method=chain", "decode.draft_budget=3")
    else:
        path = write_random_drafter(tmp_path / "drafter", kind=request.param)
        yield (f"drafter.path={path}", *(THRESHOLD if request.param == "sets" else ()))


def test_diagnostics_agree_with_what_the_samples_cost(
    job_file: Path, settings: tuple[str, ...]
) -> None:
    found = _diagnosis(job_file, *settings)
    rounds = sum(row["rounds"] for row in found["blocks"])
    accepted = sum(row["rounds"] * row["accepted_per_round"] for row in found["blocks"])
    assert found["samples"] == 3
    assert rounds == pytest.approx(found["forwards_per_sample"] * 3)
    assert found["transitions"] == pytest.approx(rounds + accepted)
    assert accepted > 0
    blamed = found["first_rejections"]
    assert blamed["rejections"] + blamed["block_end"] > 0
    assert sum(row["count"] for row in found["masses"]) > 0
    assert found["draft_budget"] == (3 if found["method"] == "chain" else 20)


def test_a_job_that_drafts_nothing_cannot_be_diagnosed(job_file: Path) -> None:
    with pytest.raises(JobError, match="nothing is drafted in this job"):
        _diagnosis(job_file)
