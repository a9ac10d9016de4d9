"""Collected trajectories: what the reference decoder goes through, state by state."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import workers.runtime
from manifests.columns import TRAJECTORY_COLUMNS, output_schema
from spot.conditionals import stale_of
from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import Stale
from spot.limits import Limits
from spot.targets.base import State, Unit, evaluate
from spot.targets.paged import PagedTarget
from spot.training.trajectories import NEVER, PROMPT, SampleTrajectory
from spot.trajectory import Trajectory
from spot.transition import Rule
from tests.manifests.builders import StoredJob, make_job
from tests.twins import BLOCK_LENGTH as L
from tests.twins import MASK_ID, write_sdar_twin
from tests.workers.builders import drain_work
from workers.budget import FixedBudget
from workers.collection import (
    CollectWork,
    Name,
    Recorder,
    from_columns,
    load_collecting,
    to_columns,
)
from workers.engine import Engine, EngineSettings
from workers.errors import RowError
from workers.output import check_shard, write_shard
from workers.runtime import load_runtime
from workers.samples import SampleRequest, SampleResult
from workers.work import open_work

LENGTHS = (1, L - 1, L, L + 3)
MAX_TOKENS = 13
GREEDY, SAMPLED = Rule(), Rule(temperature=1.0, top_p=0.9)
THRESHOLD = Rule(name="threshold", tau=0.03)  # the twin is never sure
DECODE = {"max_tokens": MAX_TOKENS, "ignore_eos": True}


@pytest.fixture(scope="module")
def twin_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_sdar_twin(Path(tmp_path_factory.mktemp("twin")))


@pytest.fixture(scope="module")
def target(twin_path: Path) -> PagedTarget:
    return PagedTarget.load(twin_path)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """No prefix pages beyond what the batch needs, and no probe before every little job."""
    monkeypatch.setattr(workers.runtime, "probe_invariance", lambda target: None)
    monkeypatch.setattr(workers.runtime, "CACHE_BYTES", 0)


def _requests() -> list[SampleRequest]:
    rng = np.random.default_rng(7)
    return [
        SampleRequest(
            shard=0,
            row=row,
            sample=0,
            prompt_ids=tuple(int(i) for i in rng.integers(0, 256, length)),
            key=2**63 + row,
            max_tokens=MAX_TOKENS,
        )
        for row, length in enumerate(LENGTHS)
    ]


def _limits(request: SampleRequest) -> Limits:
    return Limits(prompt_tokens=len(request.prompt_ids), max_tokens=request.max_tokens)


def _collected(target: PagedTarget, rule: Rule) -> list[SampleTrajectory]:
    """Of all requests, decoded together."""
    recorder = Recorder()
    settings = EngineSettings(rule=rule, batch=3, num_pages=40)
    engine = Engine(
        target, settings=settings, limits=_limits, budget=FixedBudget(0), observer=recorder
    )
    for request in _requests():
        engine.add(request)
    while engine.has_work():
        engine.step()
    return [recorder.take(Name(0, row, 0)) for row in range(len(LENGTHS))]


def _decoded(target: PagedTarget, rule: Rule, request: SampleRequest) -> Trajectory:
    """What the reference decoder makes of a request."""
    sample = Sample(prompt_ids=request.prompt_ids, key=request.key, limits=_limits(request))
    return ReferenceDecoder(target, rule=rule).decode(sample).trajectory


class Way(NamedTuple):
    """A request, its collected trajectory, and the reference decoder's."""

    request: SampleRequest
    found: SampleTrajectory
    expected: Trajectory


@pytest.fixture(scope="module", params=[GREEDY, SAMPLED, THRESHOLD], ids=["t0", "t1", "tau"])
def ways(request: pytest.FixtureRequest, target: PagedTarget) -> list[Way]:
    """All requests under a rule."""
    rule: Rule = request.param
    found = _collected(target, rule)
    return [Way(r, f, _decoded(target, rule, r)) for r, f in zip(_requests(), found, strict=True)]


def _when(request: SampleRequest, trajectory: Trajectory) -> dict[int, State]:
    """By start of a decoded block, the transition of each position."""
    found: dict[int, State] = {}
    steps: dict[int, int] = {}
    for move in trajectory.moves:
        start = move[0].position // L * L
        if start not in found:
            inside = np.arange(start, start + L) < len(request.prompt_ids)
            found[start] = np.where(inside, PROMPT, NEVER)
        for commit in move:
            found[start][commit.position - start] = steps.get(start, 0)
        steps[start] = steps.get(start, 0) + 1
    return found


def test_blocks_and_steps_are_those_of_the_reference_decoder(ways: list[Way]) -> None:
    for request, found, trajectory in ways:
        when = _when(request, trajectory)
        assert found.start.tolist() == list(when)
        assert np.array_equal(found.when, np.stack(list(when.values())))
        states = [(b, s) for b, row in enumerate(when.values()) for s in range(row.max() + 1)]
        assert list(zip(found.block.tolist(), found.step.tolist(), strict=True)) == states
        assert len(states) == trajectory.transitions


@pytest.mark.parametrize("ways", [THRESHOLD], indirect=True)
def test_a_threshold_transition_gives_several_positions_one_number(ways: list[Way]) -> None:
    assert any((np.bincount(row[row >= 0]) > 1).any() for way in ways for row in way.found.when)


def _evaluated(target: PagedTarget, canvas: State, start: int) -> Stale:
    """The conditionals of the block at ``start``, computed from nothing."""
    blocks, num = canvas.reshape(-1, L), start // L
    stores = [
        Unit(state=blocks[b], start=b * L, pages=tuple(range(b)), write=b) for b in range(num)
    ]
    unit = Unit(state=blocks[num], start=start, pages=tuple(range(num)))
    found = evaluate(target, [unit, *stores], target.new_pages(num + 1), num_states=1)
    return stale_of(found, [0])[0]


def test_each_state_is_kept_with_its_own_conditionals(ways: list[Way], target: PagedTarget) -> None:
    request, found, trajectory = ways[-1]
    canvas = np.full(-(-_limits(request).end // L) * L, MASK_ID, np.int64)
    canvas[: len(request.prompt_ids)] = request.prompt_ids
    for row, move in enumerate(trajectory.moves):
        stale = _evaluated(target, canvas, int(found.start[found.block[row]]))
        assert np.array_equal(found.doubts[row], stale.doubts)
        assert np.array_equal(found.log_probs[row], stale.log_probs)
        for commit in move:
            canvas[commit.position] = commit.token


def test_a_sample_that_was_taken_is_forgotten(target: PagedTarget) -> None:
    recorder = Recorder()
    settings = EngineSettings(rule=GREEDY, batch=2, num_pages=40)
    engine = Engine(
        target, settings=settings, limits=_limits, budget=FixedBudget(0), observer=recorder
    )
    for request in _requests()[:2]:
        engine.add(request)
    while engine.has_work():
        engine.step()
    recorder.take(Name(0, 0, 0))
    with pytest.raises(KeyError):
        recorder.take(Name(0, 0, 0))
    assert recorder.take(Name(0, 1, 0)).start.tolist() == [0, L, 2 * L]


@pytest.fixture
def job(tmp_path: Path, twin_path: Path) -> StoredJob:
    """A collect job of two rows; planning found trouble in the second."""
    return make_job(
        tmp_path, counts=(2,), work="collect", target={"path": str(twin_path)}, decode=DECODE
    )


def test_every_output_comes_with_its_trajectory_and_an_error_row_without(job: StoredJob) -> None:
    work = open_work(job.plan, job=job.plan.job)
    samples = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()
    assert [s.error_class for s in samples] == [None, None, "EmptyPrompt", "EmptyPrompt"]
    assert [s.trajectory is None for s in samples] == [False, False, True, True]
    for sample in samples[:2]:
        assert len(from_columns(sample.trajectory or {}).step) == sample.transitions
    assert work.dtype == "float32"


def _collect_job(folder: Path, twin_path: Path, **groups: Any) -> StoredJob:
    """A collect job of two rows, decoded at temperature 1."""
    decode = {**DECODE, "temperature": 1.0, "draft_budget": 4, **groups.pop("decode", {})}
    return make_job(
        folder,
        counts=(2,),
        work="collect",
        target={"path": str(twin_path)},
        decode=decode,
        **groups,
    )


@pytest.mark.parametrize(
    "groups",
    [
        {"drafter": {"path": "/nowhere"}},
        {"drafter": {"method": "chain"}},
        {"drafter": {"method": "chain"}, "decode": {"verifier": "rejection"}},
        {"decode": {"verifier": "greedy"}},
    ],
)
def test_collecting_drafts_nothing_whatever_drafter_and_verifier_are_named(
    tmp_path: Path, twin_path: Path, groups: dict[str, Any]
) -> None:
    job = _collect_job(tmp_path / "job", twin_path, **groups)
    plain = _collect_job(tmp_path / "plain", twin_path)
    work = load_collecting(job.plan, job=job.plan.job)
    found = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()
    assert work.counters()["drafts"] == 0
    expected = drain_work(
        load_collecting(plain.plan, job=plain.plan.job), plain, shard=0, rows=plain.rows[0]
    )
    assert [s.trajectory for s in found] == [s.trajectory for s in expected.in_order()]


def test_the_trajectory_of_a_sample_without_a_text_is_dropped(
    job: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_text(self: object, result: SampleResult) -> None:
        raise RowError("NoText", "its text cannot be made")

    monkeypatch.setattr(workers.runtime.Runtime, "finish", no_text)
    recorder = Recorder()
    runtime = load_runtime(job.plan.job, observer=recorder)
    work = CollectWork(job.plan, runtime=runtime, recorder=recorder)
    samples = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()
    assert {(s.error_class, s.trajectory) for s in samples[:2]} == {("NoText", None)}
    with pytest.raises(KeyError):
        recorder.take(Name(0, 0, 0))


def test_a_parquet_file_gives_trajectories_back_and_error_rows_have_none(
    job: StoredJob, tmp_path: Path
) -> None:
    work = open_work(job.plan, job=job.plan.job)
    assembly = drain_work(work, job, shard=0, rows=job.rows[0])
    path, schema = tmp_path / "shard.parquet", output_schema("none", work="collect")
    write_shard(path, assembly, schema=schema, metadata={})
    check_shard(path, assembly, schema=schema)
    rows = pq.read_table(path).to_pylist()
    for row, sample in zip(rows[:2], assembly.in_order(), strict=False):
        assert to_columns(from_columns(row)) == sample.trajectory
    assert [row[name] for row in rows[2:] for name in TRAJECTORY_COLUMNS] == [None] * 14


def test_a_number_of_states_that_is_not_that_of_the_steps_is_refused(job: StoredJob) -> None:
    work = open_work(job.plan, job=job.plan.job)
    sample = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()[0]
    row = {**(sample.trajectory or {}), "trajectory_states": 1}
    with pytest.raises(ValueError, match="number of states"):
        from_columns(row)
