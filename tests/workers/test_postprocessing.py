"""The user's last word on samples: texts changed, filtered, and errors that stay with their row."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from manifests.plan import ShardPlan
from manifests.staged import read_shard
from tests.jobs.support import FakeWork, planned_job, prompts
from tests.manifests.builders import job_spec
from workers.postprocessing import PostprocessedWork, PostprocessError, load_postprocess
from workers.samples import OutputSample
from workers.work import open_work


def process(sample: dict[str, Any]) -> Any:
    """Each row tries something else."""
    match sample["id"]:
        case "r0":
            return f"{sample['sample']} {sample['carried']} {sample['prompt']}"
        case "r1":
            return None
        case "r2":
            return 7
        case "r3":
            return "\ud800"
        case _:
            raise KeyError("missing")


def outputs(folder: Path, *, n: int = 2) -> dict[tuple[str, int], OutputSample]:
    """By row id and sample."""
    rows = [*prompts(5), {"id": "bad", "prompt": None}]
    planned = planned_job(folder, rows=rows, settings=[f"sampling: {{n: {n}}}"])
    work = PostprocessedWork(FakeWork(planned.plan), process, num_samples=n)
    samples: list[OutputSample] = []
    names: dict[tuple[int, int], str] = {}
    for shard in planned.plan.shards:
        staged = read_shard(planned.store, planned.plan, shard.shard)
        names |= name_rows(shard, [row.id for row in staged])
        samples += work.admit(shard, staged)
        while work.has_work():
            samples += work.step()
    assert work._rows == {}
    return {(names[s.shard, s.row], s.sample): s for s in samples}


def name_rows(shard: ShardPlan, ids: list[str]) -> dict[tuple[int, int], str]:
    return {(shard.shard, index): row_id for index, row_id in enumerate(ids)}


def test_a_text_is_replaced_and_token_ids_stay(tmp_path: Path) -> None:
    found = outputs(tmp_path)
    assert found["r0", 1].text == '1 {"family": "a"} say 0'
    assert found["r0", 1].token_ids == tuple(map(ord, "say 0"))


@pytest.mark.parametrize(
    ("row", "error_class", "words"),
    [
        ("r1", "Filtered", "filtered the sample out"),
        ("r2", "PostprocessFailed", "TypeError: it returned int"),
        ("r3", "PostprocessFailed", "UnicodeEncodeError"),
        ("r4", "PostprocessFailed", "KeyError: 'missing'"),
        ("bad", "NullPrompt", "is null"),
    ],
)
def test_every_other_end_is_an_error_row_of_that_sample(
    tmp_path: Path, row: str, error_class: str, words: str
) -> None:
    found = outputs(tmp_path)
    for sample in range(2):
        output = found[row, sample]
        assert (output.error_class, output.text, output.token_ids) == (error_class, None, None)
        assert words in (output.error_message or "")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "own_hook.py").write_text("def keep(sample):\n    return sample['text']\nNO = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_hook"
    sys.modules.pop("own_hook", None)


def test_a_function_is_found_by_its_import_path(module: str) -> None:
    assert load_postprocess(f"{module}:keep")({"text": "x"}) == "x"


@pytest.mark.parametrize("name", ["own_hook:missing", "nowhere_at_all:keep"])
def test_one_that_cannot_be_loaded_is_named_with_the_remedy(module: str, name: str) -> None:
    with pytest.raises(PostprocessError, match=f"`{name}` cannot be loaded on a worker"):
        load_postprocess(name)


def test_what_is_no_function_is_refused(module: str) -> None:
    with pytest.raises(PostprocessError, match="is no function"):
        load_postprocess(f"{module}:NO")


def test_work_is_not_loaded_when_the_function_is_missing(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(1), set_=["output.postprocess=nowhere:f"])
    with pytest.raises(PostprocessError):
        open_work(planned.plan, job=planned.plan.job)


@pytest.mark.parametrize("name", ["module", "a b:c", ":f", "m:f()"])
def test_what_is_no_import_path_is_refused_with_the_job_file(name: str) -> None:
    with pytest.raises(ValidationError):
        job_spec(output={"uri": "/out", "postprocess": name})


def test_it_is_refused_where_no_text_is_made() -> None:
    with pytest.raises(ValidationError, match="has no text to work on with work: null"):
        job_spec(work="null", output={"uri": "/out", "postprocess": "m:f"})
