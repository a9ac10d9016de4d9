"""`verify`: findings of either kind, and what each means for the verdict."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from jobs.errors import JobError
from jobs.reading import OpenJob
from jobs.verify import verify_job
from manifests.job import JobSpec
from manifests.plan import Plan
from tests.jobs.support import (
    Answer,
    FakeReplayer,
    commit,
    finished_job,
    planned_job,
    prompts,
)
from workers.errors import NumericsError


def other_token(answer: Answer) -> Answer:
    token_ids, finish_reason, trace = answer
    return (9, *token_ids[1:]), finish_reason, trace


def test_a_good_job_passes(tmp_path: Path) -> None:
    verification = verify_job(finished_job(tmp_path, rows=prompts(3)))
    assert verification.passed
    assert verification.complete
    assert verification.lines() == ["2 of 2 shards, 3 samples: no finding"]


def test_an_incomplete_job_passes_with_what_it_has(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    commit(planned, shards=[0])
    verification = verify_job(OpenJob(store=planned.store, plan=planned.plan))
    assert verification.passed
    assert verification.summary() == "1 of 2 shards, 2 samples: no finding"


def test_equal_replays_are_told(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    verification = verify_job(job, replay=2, replayer_of=lambda revision: FakeReplayer())
    assert verification.passed
    assert verification.summary().endswith("2 samples decoded again without drafts: 0 differ")


def test_a_replay_that_differs_fails_the_job(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(1))
    verification = verify_job(job, replay=1, replayer_of=lambda revision: FakeReplayer(other_token))
    assert not verification.passed
    assert "token 0 is 115, replayed 9" in verification.lines()[0]


def test_fast_numerics_promised_nothing(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(1), set_=["decode.numerics=fast"])
    verification = verify_job(job, replay=1, replayer_of=lambda revision: FakeReplayer(other_token))
    assert verification.passed
    assert "1 differ (decode.numerics is fast" in verification.summary()


def test_damage_is_a_finding_and_nothing_is_replayed(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    path = sorted((tmp_path / "out" / "data").iterdir())[0]
    path.write_bytes(path.read_bytes()[:-1])
    replayer = FakeReplayer()
    verification = verify_job(job, replay=2, replayer_of=lambda revision: replayer)
    assert not verification.passed
    assert replayer.replayed == []
    assert verification.lines()[0].startswith(f"finding: data/{path.name}: ")
    assert verification.summary().endswith("findings")


def test_a_damaged_record_is_a_finding(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    (tmp_path / "out" / "commits" / "r0000" / "00000000.json").write_text("{}")
    assert not verify_job(job).passed


def test_a_replay_needs_the_target_that_the_job_was_planned_with(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(1))
    (tmp_path / "target" / "model.safetensors").write_bytes(b"others")
    with pytest.raises(JobError, match=r"model\.safetensors is not the file"):
        verify_job(job, replay=1)


@pytest.mark.parametrize("error", [ValueError("no weights"), NumericsError("another device")])
def test_a_target_that_cannot_be_loaded_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(plan: Plan, *, job: JobSpec) -> None:
        raise error

    module = ModuleType("workers.replay")
    monkeypatch.setattr(module, "Replayer", refuse, raising=False)
    monkeypatch.setitem(sys.modules, "workers.replay", module)
    job = finished_job(tmp_path, rows=prompts(1))
    with pytest.raises(JobError, match=f"cannot be loaded for a replay: {error}"):
        verify_job(job, replay=1)


def test_the_json_form_says_whether_it_passed(tmp_path: Path) -> None:
    value = verify_job(finished_job(tmp_path, rows=prompts(1))).to_json()
    assert (value["passed"], value["findings"], value["replays"]) == (True, (), None)
