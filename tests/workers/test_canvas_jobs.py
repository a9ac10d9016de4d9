"""Jobs on bidirectional targets: what is loaded, decoded, replayed and refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import workers.runtime
from manifests.staged import StagedRow
from spot.drafters.base import Drafter
from spot.targets.base import CacheContext, Canvas, CanvasTarget, CanvasUnit, Opened
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.parallel.target import ParallelCanvasTarget
from tests.checkpoints import FamilyName, write_released
from tests.manifests.builders import StoredJob, make_job
from tests.twins import write_sdar_twin
from tests.workers.builders import drain_work
from workers.auto_budget import AutoBudget
from workers.canvas_engine import CanvasEngine
from workers.canvas_probe import probe_canvas_invariance
from workers.errors import NumericsError, RowError
from workers.profiling import profile_canvas
from workers.replay import Replayer
from workers.runtime import load_parts, load_runtime
from workers.samples import OutputSample
from workers.work import GenerateWork

L = 8
FAMILIES: tuple[FamilyName, ...] = ("llada", "dream")


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[FamilyName, Path]:
    """A checkpoint of each family."""
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("canvas")
    return {family: write_released(family, root / family) for family in FAMILIES}


def _job(folder: Path, path: Path, **groups: Any) -> StoredJob:
    decode = {"max_tokens": 11, "cache_context": "prefix", "draft_budget": 4}
    return make_job(
        folder,
        target={"path": str(path), "block_length": L} | groups.pop("target", {}),
        decode=decode | groups.pop("decode", {}),
        output={"uri": "/out", "trace": "commits"},
        cluster={"batch": 3} | groups.pop("cluster", {}),
        **groups,
    )


def _decoded(job: StoredJob) -> list[OutputSample]:
    runtime = load_runtime(job.plan.job)
    work = GenerateWork(job.plan, runtime=runtime)
    outputs = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()
    if isinstance(runtime.target, ParallelCanvasTarget):
        runtime.target.leader.close()
    return outputs


@pytest.mark.parametrize("context", ["prefix", "prefix+suffix"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_replay_without_drafts_is_what_a_drafting_worker_decodes(
    tmp_path: Path, directories: dict[FamilyName, Path], family: FamilyName, context: str
) -> None:
    decode = {"temperature": 1.0, "cache_context": context}
    job = _job(tmp_path, directories[family], drafter={"method": "stale_rule"}, decode=decode)
    runtime = load_runtime(job.plan.job)
    assert isinstance(runtime.engine, CanvasEngine)
    work = GenerateWork(job.plan, runtime=runtime)
    outputs = drain_work(work, job, shard=0, rows=job.rows[0]).in_order()
    assert sum(o.drafted for o in outputs) > 0
    replayer = Replayer(job.plan)
    for output in outputs:
        ids, reason, trace = replayer.replay(
            job.plan.shards[0],
            row_index=output.row,
            row=job.rows[0][output.row],
            sample=output.sample,
        )
        assert (ids, reason, trace) == (output.token_ids, output.finish_reason, output.trace)


def test_an_automatic_budget_has_a_profile_of_its_own_and_changes_no_output(
    tmp_path: Path, directories: dict[FamilyName, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[AutoBudget] = []

    def profiled(target: CanvasTarget, drafter: Drafter) -> AutoBudget:
        made.append(profile_canvas(target, drafter))
        return made[-1]

    monkeypatch.setattr(workers.runtime, "profile_canvas", profiled)
    auto = {"draft_budget": "auto", "temperature": 1.0}
    drafter = {"method": "stale_rule"}
    drafted = _decoded(_job(tmp_path / "a", directories["dream"], decode=auto, drafter=drafter))
    free = _decoded(_job(tmp_path / "b", directories["dream"], decode={"temperature": 1.0}))
    assert [o.trace for o in drafted] == [o.trace for o in free]
    (budget,) = made
    assert budget.costs.length == L
    assert budget.num_rounds > 0


@pytest.mark.models
def test_a_job_whose_target_two_processes_share_decodes_what_one_does(
    tmp_path: Path,
) -> None:
    path = write_released("dream", tmp_path / "dream", vocab_size=266)
    settings: dict[str, Any] = {
        "target": {"dtype": "float64"},
        "decode": {"cache_context": "prefix+suffix", "temperature": 1.0},
        "drafter": {"method": "stale_rule"},
    }
    alone, shared = (
        _job(
            tmp_path / str(size),
            path,
            cluster={"tensor_parallel": size},
            **settings,
        )
        for size in (1, 2)
    )
    expected, outputs = _decoded(alone), _decoded(shared)
    assert sum(o.drafted for o in outputs) > 0
    for output, other in zip(outputs, expected, strict=True):
        assert output.trace is not None
        assert other.trace is not None
        assert output.token_ids == other.token_ids
        assert (output.trace.positions, output.trace.tokens) == (
            other.trace.positions,
            other.trace.tokens,
        )


def test_a_bidirectional_target_needs_a_context_and_an_exact_one_takes_none(
    tmp_path: Path, directories: dict[FamilyName, Path]
) -> None:
    silent = _job(tmp_path / "a", directories["dream"], decode={"cache_context": None})
    with pytest.raises(ValueError, match=r"the dream family, .* set decode.cache_context to"):
        load_parts(silent.plan.job)
    exact = _job(tmp_path / "b", write_sdar_twin(tmp_path / "twin"))
    with pytest.raises(ValueError, match=r"the sdar family, whose prefix cache is exact; remove"):
        load_parts(exact.plan.job)


def test_the_whole_canvas_must_fit(tmp_path: Path, directories: dict[FamilyName, Path]) -> None:
    job = _job(tmp_path, directories["llada"], decode={"max_tokens": 9})
    target, tokenization = load_parts(job.plan.job)
    template = len(tokenization.encode(StagedRow(row=0, id="r", prompt="")))
    room = target.spec.max_positions - 2 * L - template
    assert len(tokenization.encode(StagedRow(row=0, id="r", prompt="x" * room))) > 0
    with pytest.raises(RowError, match="the target takes"):
        tokenization.encode(StagedRow(row=0, id="r", prompt="x" * (room + 1)))


class Sociable(NativeCanvasTarget):
    """Has other logits in company."""

    def hidden(self, units: list[CanvasUnit]) -> Tensor:
        """A bit more of everything beside others."""
        return super().hidden(units) * (1.0 + 1e-6 * (len(units) > 1))


class Crowded(NativeCanvasTarget):
    """Leaves other keys where several canvases are opened."""

    def open(self, canvases: list[Canvas], *, context: CacheContext) -> list[Opened]:
        """A bit more of everything beside others."""
        opened = super().open(canvases, context=context)
        if len(canvases) == 1:
            return opened
        return [replace(each, keys=tuple(k * (1.0 + 1e-6) for k in each.keys)) for each in opened]


def test_the_probe_passes_here_and_refuses_a_target_that_minds_company(
    directories: dict[FamilyName, Path],
) -> None:
    probe_canvas_invariance(NativeCanvasTarget.load(directories["llada"], block_length=L))
    sociable = Sociable.load(directories["llada"], block_length=L)
    with pytest.raises(NumericsError, match="gives other bits for a block among 2 than alone"):
        probe_canvas_invariance(sociable)
    crowded = Crowded.load(directories["llada"], block_length=L)
    with pytest.raises(NumericsError, match="gives other bits for a block among 2 than alone"):
        probe_canvas_invariance(crowded)


def test_invariant_numerics_are_probed_at_the_start(
    tmp_path: Path, directories: dict[FamilyName, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    probed: list[object] = []
    monkeypatch.setattr(workers.runtime, "probe_canvas_invariance", probed.append)
    load_parts(_job(tmp_path / "a", directories["llada"]).plan.job)
    assert len(probed) == 1
    load_parts(_job(tmp_path / "b", directories["llada"], decode={"numerics": "fast"}).plan.job)
    assert len(probed) == 1
