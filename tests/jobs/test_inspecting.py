"""Single samples, chosen and printed."""

from pathlib import Path

import pytest

from jobs.inspecting import Choice, inspect_samples
from jobs.reading import OpenJob
from tests.jobs.support import finished_job, prompts


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    rows = [*prompts(3), {"id": "bad\x1b[31m", "prompt": None}]
    return finished_job(tmp_path, rows=rows, settings=["sampling: {n: 2}"])


def names(job: OpenJob, choice: Choice) -> list[tuple[str, int]]:
    return [(s.values["id"], s.values["sample"]) for s in inspect_samples(job, choice)]


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        (Choice(errors=True), [("bad\x1b[31m", 0), ("bad\x1b[31m", 1)]),
        (Choice(ids={"r1"}), [("r1", 0), ("r1", 1)]),
        (Choice(shards={1}, finish_reason="stop"), [("r2", 0), ("r2", 1)]),
        (Choice(finish_reason="length"), []),
        (Choice(shards={7}), []),
    ],
)
def test_conditions_choose_samples_in_input_order(
    job: OpenJob, choice: Choice, found: list[tuple[str, int]]
) -> None:
    assert names(job, choice) == found


def test_a_sample_has_its_prompt_and_its_cost(job: OpenJob) -> None:
    first = next(inspect_samples(job, Choice()))
    head, prompt, _, text = first.lines()
    assert (
        head
        == "--- r0 sample 0 (shard 0, row 0): stop, 5 tokens, 3 forwards (draft-free 5), 0.50 s"
    )
    assert (prompt, text) == ("say 0", "echo: say 0")
    assert first.to_json()["prompt"] == "say 0"


def test_an_error_row_says_its_class_and_reaches_no_terminal_with_control_characters(
    job: OpenJob,
) -> None:
    (first, _) = inspect_samples(job, Choice(errors=True))
    assert first.lines()[-1].startswith("NullPrompt: ")
    assert "\x1b" not in "".join(first.lines())
