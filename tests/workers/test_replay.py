"""Replays of committed samples against what a worker decodes, on a random target."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import workers.runtime
from spot.drafters.checkpoint import DrafterConfig, OrderModelShape, save_drafter
from spot.drafters.order_model import OrderModel
from tests.manifests.builders import StoredJob, make_job
from tests.twins import BLOCK_LENGTH, write_sdar_twin
from tests.workers.builders import drain_work
from workers.errors import RowError
from workers.replay import Replayer
from workers.runtime import load_runtime
from workers.samples import OutputSample
from workers.work import GenerateWork

THRESHOLD: dict[str, Any] = {"rule": "threshold", "tau": 0.02}  # the twin is never sure
DRAWN: dict[str, Any] = {"temperature": 1.0, "top_p": 0.9}


@pytest.fixture(scope="module")
def twin_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sdar_twin(tmp_path_factory.mktemp("twin"))


@pytest.fixture(scope="module")
def drafter_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(tmp_path_factory.mktemp("drafter"))
    shape = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
    config = DrafterConfig(shape=shape, block_length=BLOCK_LENGTH, target="t", data="d")
    torch.manual_seed(0)
    save_drafter(OrderModel(shape), config, path)
    return path


@pytest.fixture
def _few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.runtime, "CACHE_BYTES", 0)


def _job(
    folder: Path,
    twin: Path,
    *,
    drafter: Path | None = None,
    method: str | None = None,
    **decode: Any,
) -> StoredJob:
    return make_job(
        folder,
        target={"path": str(twin)},
        drafter={"path": drafter and str(drafter), "method": method},
        decode={"max_tokens": 11, "draft_budget": 4 if drafter or method else 0} | decode,
        output={"uri": "/out", "trace": "commits"},
        cluster={"batch": 3},
    )


def _decoded(job: StoredJob, *, shard: int) -> list[OutputSample]:
    """The shard's samples that are no errors."""
    work = GenerateWork(job.plan, runtime=load_runtime(job.plan.job))
    assembly = drain_work(work, job, shard=shard, rows=job.rows[shard])
    good = [s for s in assembly.in_order() if s.error_class is None]
    assert good
    return good


def _assert_replayed(job: StoredJob, *, shard: int) -> None:
    rows = job.rows[shard]
    replayer = Replayer(job.plan)
    for sample in _decoded(job, shard=shard):
        token_ids, reason, trace = replayer.replay(
            job.plan.shards[shard],
            row_index=sample.row,
            row=rows[sample.row],
            sample=sample.sample,
        )
        assert (token_ids, reason) == (sample.token_ids, sample.finish_reason)
        assert trace == sample.trace


@pytest.mark.usefixtures("_few_pages")
@pytest.mark.parametrize("decode", [{}, DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("shard", [0, 1])
def test_a_replay_is_what_a_drafting_worker_decodes(
    tmp_path: Path, twin_path: Path, drafter_path: Path, decode: dict[str, Any], shard: int
) -> None:
    job = _job(tmp_path, twin_path, drafter=drafter_path, **decode)
    _assert_replayed(job, shard=shard)


@pytest.mark.usefixtures("_few_pages")
@pytest.mark.parametrize(
    ("method", "decode"),
    [("sets_stale", {}), ("sets_stale", DRAWN), ("chain", {})],
    ids=["greedy", "drawn", "chain"],
)
def test_a_replay_is_what_a_worker_decodes_under_the_threshold_rule(
    tmp_path: Path, twin_path: Path, method: str, decode: dict[str, Any]
) -> None:
    job = _job(tmp_path, twin_path, method=method, **(THRESHOLD | decode))
    samples = _decoded(job, shard=0)
    assert any(sample.drafted for sample in samples)
    traces = [sample.trace for sample in samples if sample.trace is not None]
    assert [trace.num_transitions for trace in traces] == [s.transitions for s in samples]
    assert any(trace.num_transitions < len(trace.positions) for trace in traces)
    _assert_replayed(job, shard=0)


@pytest.mark.usefixtures("_few_pages")
def test_a_replay_is_what_an_uncoupled_worker_decodes(tmp_path: Path, twin_path: Path) -> None:
    job = _job(tmp_path, twin_path, method="chain", verifier="uncoupled", **DRAWN)
    assert any(sample.drafted for sample in _decoded(job, shard=0))
    _assert_replayed(job, shard=0)


@pytest.mark.usefixtures("_few_pages")
def test_stop_strings_cut_a_replay_as_they_cut_the_output(tmp_path: Path, twin_path: Path) -> None:
    job = _job(tmp_path, twin_path, stop=["\ufffd", "u"], ignore_eos=True)
    assert "stop" in {s.finish_reason for s in _decoded(job, shard=0)}
    _assert_replayed(job, shard=0)


def test_samples_of_a_row_are_replayed_with_their_own_keys(tmp_path: Path, twin_path: Path) -> None:
    job = _job(tmp_path, twin_path, **DRAWN)
    replayer, row = Replayer(job.plan), job.rows[0][1]
    first, second = (
        replayer.replay(job.plan.shards[0], row_index=1, row=row, sample=sample)
        for sample in range(2)
    )
    assert first[0] != second[0]


def test_a_row_that_cannot_be_decoded_cannot_be_replayed(tmp_path: Path, twin_path: Path) -> None:
    job = _job(tmp_path, twin_path)
    row = replace(job.rows[0][0], prompt="x" * 300)
    with pytest.raises(RowError, match="shorten the prompt"):
        Replayer(job.plan).replay(job.plan.shards[0], row_index=0, row=row, sample=0)
