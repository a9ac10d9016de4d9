"""Every key of `docs/json.md` is printed, and everything that is printed is on the page."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from jobs.cli.group import cli
from jobs.estimates import Rate, estimate
from jobs.job_file import load_job
from jobs.planning import preview_job
from jobs.preview import preview_json
from jobs.reading import OpenJob
from jobs.replaying import Difference, Replays
from jobs.verify import Verification
from manifests.findings import Finding
from manifests.journal import write_failure, write_log, write_presence
from manifests.records import Failure, Presence
from tests.cli.support import spotbatch
from tests.docs.documents import page
from tests.jobs.growing import ALL, PLANNED, append
from tests.jobs.support import commit, finished_job, planned_job, prompts, write_job

ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)
# Verbs whose JSON the page names without freezing it.
NOT_FROZEN = {"target inspect", "drafter eval", "drafter diagnose"}
RATE = Rate(samples=2, tokens=20, seconds=1.5, source="a test")


def tables() -> dict[str, dict[str, str]]:
    """Types by key, of each verb."""
    sections = re.split(r"^## ", page("json.md"), flags=re.MULTILINE)[1:]
    found = {s.partition("\n")[0].strip("`"): dict(ROW.findall(s)) for s in sections}
    return {verb: rows for verb, rows in found.items() if rows}


TABLES = tables()
IS_OF_TYPE: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "whole number": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "true or false": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "list of objects": lambda value: isinstance(value, list),
    "counts by name": lambda value: all(type(count) is int for count in value.values()),
    "shares by name": lambda value: all(0.0 <= share <= 1.0 for share in value.values()),
}


def values(printed: dict[str, Any], types: dict[str, str], prefix: str = "") -> Iterator[Any]:
    """Keys as the page writes them, with values; into what the page calls objects and lists."""
    for name, value in printed.items():
        key = prefix + name
        yield key, value
        kind = types.get(key, "")
        if kind.startswith("object") and value is not None:
            yield from values(value, types, f"{key}.")
        elif kind == "list of objects":
            for item in value:
                yield from values(item, types, f"{key}[].")


def assert_as_documented(verb: str, *printed: dict[str, Any]) -> None:
    """The outputs together have every key of the table, and nothing else, in its types."""
    types = TABLES[verb]
    seen = [pair for output in printed for pair in values(output, types)]
    assert {key for key, _ in seen} == set(types)
    for key, value in seen:
        kind = types[key].removesuffix(" or null")
        if value is None:
            assert types[key].endswith(" or null"), key
        else:
            assert IS_OF_TYPE[kind](value), (key, value)
    top = {key for key in types if "." not in key}
    assert all(set(output) == top for output in printed)


def json_of(*arguments: str | Path) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(spotbatch(*arguments, "--json").stdout)
    return printed


def json_lines_of(*arguments: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in spotbatch(*arguments, "--json").stdout.splitlines()]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenJob:
    """Complete, with an error row that can be scored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page_scorer.py").write_text(
        "def yes(row):\n    return {'correct': True, 'family': 'a'}\n"
    )
    rows = [*prompts(3), {"id": "bad", "prompt": None}]
    return finished_job(tmp_path, rows=rows, settings=["stats: {scorer: 'page_scorer:yes'}"])


def test_every_verb_with_json_is_on_the_page() -> None:
    assert set(TABLES) == set(verbs_with_json(cli)) - NOT_FROZEN
    assert all(f"`spotbatch {verb}" in page("json.md") for verb in NOT_FROZEN)


def verbs_with_json(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs_with_json(command, f"{before}{name} ")
        elif command is not None and any("--json" in param.opts for param in command.params):
            yield before + name


def test_status(tmp_path: Path, job: OpenJob) -> None:
    (tmp_path / "other").mkdir()
    running = planned_job(tmp_path / "other", rows=prompts(5))
    commit(running, shards=[0])
    said = Presence(
        epoch="e",
        host="h",
        pid=1,
        updated="2999-01-01T00:00:00+00:00",
        shards_done=1,
        shards_total=3,
        rows_done=2,
        samples_ok=2,
        samples_error=0,
        tokens=10,
        nfe=6,
        rate_tokens_s=1.5,
        eta_s=3.0,
        workers=1,
        error_classes={"NullPrompt": 1},
        finished=False,
    )
    write_presence(running.store, said)
    outputs = [json_of("status", uri) for uri in (job.store.uri, running.store.uri)]
    assert [output["state"] for output in outputs] == ["complete", "running"]
    assert_as_documented("status", *outputs)


def test_list(tmp_path: Path, job: OpenJob) -> None:
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "plan.json").write_text("{")
    listed = json_of("list", tmp_path)
    assert [each["state"] for each in listed["jobs"]] == ["complete", "damaged"]
    assert_as_documented("list", listed)


def test_plan(tmp_path: Path) -> None:
    path = write_job(tmp_path, rows=[*prompts(4), {"id": "bad", "prompt": None}])
    looked = json_of("plan", path)
    written = json_of("plan", path, "--write")
    assert written["created"]
    job = load_job(path)
    expected = estimate(RATE, num_samples=4, num_workers=1)
    measured = preview_json(job, preview_job(job), expected=expected)
    assert_as_documented("plan", looked, written, json.loads(json.dumps(measured)))


def test_extend(tmp_path: Path) -> None:
    made = finished_job(tmp_path, rows=prompts(PLANNED))
    nothing = json_of("extend", made.store.uri)
    append(tmp_path, prompts(ALL)[PLANNED:])
    assert_as_documented("extend", nothing, json_of("extend", made.store.uri))


def test_stats(tmp_path: Path, job: OpenJob) -> None:
    (tmp_path / "other").mkdir()
    planned = planned_job(tmp_path / "other", rows=prompts(2))
    nothing = json_of("stats", planned.store.uri)
    assert nothing["nfe_spread"] is None
    assert_as_documented("stats", json_of("stats", job.store.uri), nothing)


def test_verify(job: OpenJob) -> None:
    damaged = Verification(
        job=job.plan.job_id,
        complete=False,
        shards=0,
        shards_total=2,
        samples=0,
        findings=(Finding(key="k", problem="p"),),
        replays=Replays(
            replayed=1, differences=(Difference(data_key="d", id="r0", sample=0, what="w"),)
        ),
        promised=True,
    )
    as_printed = json.loads(json.dumps(damaged.to_json()))
    assert_as_documented("verify", json_of("verify", job.store.uri), as_printed)


def test_verify_of_a_job_without_a_plan(job: OpenJob) -> None:
    (Path(job.store.uri) / "plan.json").write_text("{")
    printed = json_of("verify", job.store.uri)
    assert (printed["job"], printed["passed"]) == (None, False)
    assert set(printed) == {key for key in TABLES["verify"] if "." not in key}


def test_inspect(job: OpenJob) -> None:
    samples = json_lines_of("inspect", job.store.uri)
    assert [sample["error_class"] for sample in samples] == [None] * 3 + ["NullPrompt"]
    assert_as_documented("inspect", *samples)


def test_logs(job: OpenJob) -> None:
    for row in (None, 1):
        failure = Failure(
            shard=0,
            attempt=f"{row or 0:016d}",
            kind="rows",
            error_class="WorkerLost",
            message="died",
            row=row,
            worker="w1@h",
            time="2025-01-01T00:00:00+00:00",
        )
        write_failure(job.store, failure)
    write_log(job.store, shard=0, attempt=failure.attempt, tail=b"the end")
    assert_as_documented("logs", *json_lines_of("logs", job.store.uri))


def test_export(tmp_path: Path, job: OpenJob) -> None:
    printed = json_of("export", job.store.uri, tmp_path / "clean")
    stored = (tmp_path / "clean" / "_SUCCESS.json").read_bytes()
    assert {**json.loads(stored), **printed} == json.loads(stored)
    assert_as_documented("export", printed)


def test_a_key_that_is_not_documented_is_noticed(job: OpenJob) -> None:
    printed = json_of("stats", job.store.uri)
    with pytest.raises(AssertionError):
        assert_as_documented("stats", printed | {"new": 1})
    with pytest.raises(AssertionError):
        assert_as_documented("stats", printed | {"tokens": 1.5})
