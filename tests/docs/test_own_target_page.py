"""Every sentence that the page about own targets explains is one that a wrong directory gives."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.models import inspect_models
from manifests.errors import JobFileError
from spot.targets.family import TargetError
from spot.targets.registry import load_target
from tests.docs.documents import page, run_commands
from tests.docs.terminal import Terminal
from tests.jobs.support import TARGET_CONFIG, job_of, prompts, write_target
from workers.errors import ModelFilesError
from workers.model_files import checked_models

TABLE = page("own-target.md").partition("## What errors mean")[2]
SENTENCES = [
    tuple(re.findall(r"`([^`]+)`", line.split(" | ")[0]))
    for line in TABLE.splitlines()
    if line.startswith("| `")
]


def configured(**changes: object) -> Callable[[Path], None]:
    """`config.json` with other values; None takes one out."""

    def change(target: Path) -> None:
        values = {k: v for k, v in (TARGET_CONFIG | changes).items() if v is not None}
        (target / "config.json").write_text(json.dumps(values))

    return change


def without(name: str) -> Callable[[Path], None]:
    return lambda target: (target / name).unlink()


def with_a_word_at_3(target: Path) -> None:
    added = [{"id": 5, "content": "<m>"}]
    (target / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))


# What is done to a good directory, in the order of the table, with the settings of the job.
PLANNING: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "is not a directory": (shutil.rmtree, ()),
    "names architectures": (configured(architectures=["GPT2LMHeadModel"]), ()),
    "is missing: target.path": (without("model.safetensors"), ()),
    "does not say its block length": (configured(block_size=None), ()),
    "a checkpoint has one block length": (lambda target: None, ("target.block_length=8",)),
    "has no whole number mask_token_id": (configured(mask_token_id=None), ()),
    "ordinary token there": (with_a_word_at_3, ()),
    "is missing, and so is": (without("tokenizer.json"), ()),
}


def rows_with(words: str) -> list[tuple[str, ...]]:
    return [sentence for sentence in SENTENCES if words in " ".join(sentence)]


@pytest.mark.parametrize("words", PLANNING)
def test_planning_says_the_sentence(tmp_path: Path, words: str) -> None:
    change, settings = PLANNING[words]
    job = job_of(tmp_path, rows=prompts(1), set_=settings)
    change(tmp_path / "target")
    with pytest.raises(JobFileError) as caught:
        inspect_models(job)
    (sentence,) = rows_with(words)
    assert all(part in str(caught.value) for part in sentence), str(caught.value)


def torn(target: Path) -> None:
    path = target / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def wider(target: Path) -> None:
    path = target / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"intermediate_size": 256}))


LOADING = {"is not a whole safetensors": torn, "do not belong": wider}


@pytest.mark.parametrize("words", LOADING)
def test_loading_says_the_sentence(tmp_path: Path, tiny_target: Path, words: str) -> None:
    shutil.copytree(tiny_target, tmp_path / "target")
    LOADING[words](tmp_path / "target")
    with pytest.raises(TargetError) as caught:
        load_target(tmp_path / "target")
    (sentence,) = rows_with(words)
    assert all(part in str(caught.value) for part in sentence), str(caught.value)


def test_a_worker_says_the_sentence(tmp_path: Path) -> None:
    job = job_of(tmp_path, rows=prompts(1), set_=[f"storage.cache_path={tmp_path / 'cache'}"])
    files = inspect_models(job)
    (tmp_path / "target" / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(ModelFilesError) as caught:
        checked_models(job, target=files.target, drafter=())
    (sentence,) = rows_with("planned with")
    assert all(part in str(caught.value) for part in sentence)


def test_every_row_of_the_table_is_said_by_something() -> None:
    said = [*PLANNING, *LOADING, "planned with"]
    assert len(SENTENCES) == len(said)
    assert all(len(rows_with(words)) == 1 for words in said)


@pytest.mark.cli
@pytest.mark.models
def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    values, checked, plan, preview = run_commands("own-target.md")
    terminal = Terminal(place=tmp_path, smaller=("decode.max_tokens=8",))
    assert "ok: " not in terminal.run(values)
    told = terminal.run(checked)
    assert told.count("ok: ") == 3
    assert "undecided: logits are not shifted" in told  # English prose is not its kind of text
    assert "nothing was written" in terminal.run(plan)
    assert "expected time" in terminal.run(preview)


def test_a_good_directory_is_none_of_these(tmp_path: Path) -> None:
    write_target(tmp_path / "good" / "target")
    job = job_of(tmp_path, rows=prompts(1), set_=[f"target.path={tmp_path / 'good' / 'target'}"])
    assert inspect_models(job).target
