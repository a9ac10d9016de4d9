"""Where nothing is promised about company, its effect is measured on a share of the samples."""

from dataclasses import replace
from pathlib import Path

import pytest

import workers.runtime
from manifests.job import JobSpec
from spot.targets.paged import PagedTarget
from tests.twins import write_sdar_twin
from workers.divergence import ReplayingEngine, is_chosen
from workers.runtime import load_runtime
from workers.samples import SampleRequest, SampleResult
from workers.work import Engine


@pytest.fixture(autouse=True)
def _few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.runtime, "CACHE_BYTES", 0)


def _requests(count: int) -> list[SampleRequest]:
    return [
        SampleRequest(
            shard=0, row=i, sample=0, prompt_ids=(5, 6, i), key=i * 2**56 + i, max_tokens=9
        )
        for i in range(count)
    ]


def _engine(folder: Path, *, numerics: str = "fast", share: float = 1.0) -> Engine:
    job = JobSpec.model_validate(
        {
            "input": {"uri": "prompts.jsonl"},
            "target": {"path": str(write_sdar_twin(folder / "twin"))},
            "decode": {"draft_budget": 0, "numerics": numerics, "ignore_eos": True},
            "output": {"uri": "out"},
            "cluster": {"batch": 4},
            "stats": {"replay_share": share},
        }
    )
    return load_runtime(job).engine


def _finish(engine: Engine, requests: list[SampleRequest]) -> list[SampleResult]:
    for request in requests:
        engine.add(request)
    results = []
    while engine.has_work():
        results += engine.step()
    return results


class Sociable(PagedTarget):
    """A target whose best token depends on how many states share the forward."""

    def hidden(self, units, pages):  # type: ignore[no-untyped-def]
        return super().hidden(units, pages) * (-1.0 if len(units) > 1 else 1.0)


def test_the_share_is_kept_and_depends_on_the_key_alone() -> None:
    chosen = [key for key in range(20_000) if is_chosen(key, share=0.05)]
    assert 900 < len(chosen) < 1100
    assert chosen == [key for key in range(20_000) if is_chosen(key, share=0.05)]
    assert not any(is_chosen(key, share=0.0) for key in range(100))
    assert all(is_chosen(key, share=1.0) for key in range(100))


def test_fast_numerics_are_measured(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    _finish(engine, _requests(5))
    assert isinstance(engine, ReplayingEngine)
    assert engine.counters()["replayed"] == 5
    assert engine.counters()["diverged"] == 0  # this processor keeps the bits of so small a target


def test_a_sample_with_its_own_temperature_is_decoded_again_at_it(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    cool, hot = (
        _finish(engine, [replace(r, temperature=t) for r in _requests(3)]) for t in (None, 3.0)
    )
    assert [r.token_ids for r in cool] != [r.token_ids for r in hot]
    assert (engine.counters()["replayed"], engine.counters()["diverged"]) == (6, 0)


def test_company_that_changes_tokens_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.runtime, "load_target", Sociable.load)
    engine = _engine(tmp_path)
    _finish(engine, _requests(5))
    assert engine.counters()["diverged"] > 0


def test_a_share_of_zero_measures_nothing(tmp_path: Path) -> None:
    engine = _engine(tmp_path, share=0.0)
    _finish(engine, _requests(2))
    assert "replayed" not in engine.counters()


def test_invariant_numerics_are_promised_and_not_measured(tmp_path: Path) -> None:
    assert not isinstance(_engine(tmp_path, numerics="invariant"), ReplayingEngine)
