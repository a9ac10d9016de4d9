"""Replays: which samples, what is compared, and the first difference by name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import JobError
from jobs.reading import OpenJob, read_committed
from jobs.replaying import Replays, replay_samples
from tests.jobs.support import Answer, FakeReplayer, finished_job, prompts
from workers.errors import RowError


def replays(job: OpenJob, replayer: FakeReplayer, *, count: int = 2, seed: int = 0) -> Replays:
    committed = read_committed(job)
    return replay_samples(job, committed, count=count, seed=seed, replayer_of=lambda _: replayer)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> OpenJob:
    rows = [{"id": "bad", "prompt": None}, *prompts(4)]
    return finished_job(tmp_path_factory.mktemp("job"), rows=rows, set_=["sampling.n=2"])


def test_equal_replays_differ_in_nothing(job: OpenJob) -> None:
    result = replays(job, FakeReplayer(), count=100)
    assert (result.replayed, result.differences) == (8, ())


def test_every_good_sample_is_replayed_at_its_place_and_no_error(job: OpenJob) -> None:
    replayer = FakeReplayer()
    replays(job, replayer, count=100)
    places = [(0, 1, "r0"), (1, 0, "r1"), (1, 1, "r2"), (2, 0, "r3")]
    assert replayer.replayed == [(*place, sample) for place in places for sample in (0, 1)]


def test_the_seed_chooses(job: OpenJob) -> None:
    chosen = []
    for seed in (1, 1, 2, 3):
        replayer = FakeReplayer()
        assert replays(job, replayer, count=3, seed=seed).replayed == 3
        chosen.append(tuple(replayer.replayed))
    assert chosen[0] == chosen[1]
    assert len(set(chosen)) > 1


def changed(**trace_changes: Any) -> Callable[[Answer], Answer]:
    return lambda answer: (answer[0], answer[1], replace(answer[2], **trace_changes))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: ((*a[0][:2], 7, *a[0][3:]), a[1], a[2]), "token 2 is 121, replayed 7"),
        (lambda a: (a[0][:3], a[1], a[2]), "token 3 is on one side only: 5 are committed, 3"),
        (lambda a: (a[0], "length", a[2]), "finish_reason is stop, replayed length"),
        (
            changed(positions=(11, 10, 12, 13, 14)),
            "commit (position, token, transition) 0 is (10, 115, 0), replayed (11, 115, 0)",
        ),
        (
            changed(tokens=(115, 97, 121, 32, 9)),
            "commit (position, token, transition) 4 is (14, 48, 4), replayed (14, 9, 4)",
        ),
        (
            changed(steps=(0, 1, 2, 3, 3)),
            "commit (position, token, transition) 4 is (14, 48, 4), replayed (14, 48, 3)",
        ),
    ],
)
def test_the_first_difference_is_named(
    tmp_path: Path, change: Callable[[Answer], Answer], words: str
) -> None:
    job = finished_job(tmp_path, rows=prompts(1))
    (difference,) = replays(job, FakeReplayer(change), count=1).differences
    assert words in difference.what
    key = read_committed(job).records[0].data_key
    assert str(difference).startswith(f"{key}: row r0, sample 0: ")


@pytest.mark.parametrize("trace", ["none", "tokens"])
def test_commits_are_compared_as_far_as_they_were_traced(tmp_path: Path, trace: str) -> None:
    job = finished_job(tmp_path, rows=prompts(1), set_=[f"output.trace={trace}"])
    other_order = changed(positions=(11, 10, 12, 13, 14), tokens=(97, 115, 121, 32, 48))
    differences = replays(job, FakeReplayer(other_order), count=1).differences
    expected = {"none": [], "tokens": ["commit step of token 0 is 0, replayed 1"]}
    assert [difference.what for difference in differences] == expected[trace]


def test_another_number_of_transitions_is_a_difference(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(1), set_=["output.trace=none"])
    together = changed(steps=(0, 1, 2, 3, 3))
    (difference,) = replays(job, FakeReplayer(together), count=1).differences
    assert difference.what == "transitions is 5, replayed 4"


@pytest.mark.parametrize("verifier", ["greedy", "rejection"])
def test_a_job_that_drafts_have_changed_has_nothing_to_be_compared_with(
    tmp_path: Path, verifier: str
) -> None:
    lossy = [f"decode.verifier={verifier}", "decode.temperature=1", "decode.draft_budget=4"]
    job = finished_job(tmp_path, rows=prompts(1), set_=[*lossy, "drafter.method=chain"])
    replayer = FakeReplayer()
    with pytest.raises(JobError, match=f"verifier {verifier}, so there is no draft-free output"):
        replays(job, replayer, count=1)
    assert replayer.replayed == []


def test_an_uncoupled_job_is_compared(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(1), set_=["decode.verifier=uncoupled"])
    assert replays(job, FakeReplayer(), count=1).differences == ()


def test_a_replay_that_cannot_be_made_is_a_difference(tmp_path: Path) -> None:
    def refuse(answer: Answer) -> Answer:
        raise RowError("PromptTooLong", "too long")

    job = finished_job(tmp_path, rows=prompts(1))
    (difference,) = replays(job, FakeReplayer(refuse), count=1).differences
    assert difference.what == "the replay ends in PromptTooLong: too long"
