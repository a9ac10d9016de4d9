"""Where a job stands, from its directory alone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.errors import NoJobError
from jobs.planning import PlannedJob
from jobs.reading import OpenJob, open_job, read_committed
from jobs.revising import RetryRequest, retry_job
from jobs.status import STALE_S, read_status
from manifests.errors import DamagedError
from manifests.journal import write_failure, write_presence
from manifests.protocol import seal_job
from manifests.records import Failure, Presence
from tests.jobs.support import commit, finished_job, planned_job, prompts

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def presence(*, seconds_ago: float = 1.0, finished: bool = False) -> Presence:
    return Presence(
        epoch="e1",
        host="h",
        pid=1,
        updated=(NOW - timedelta(seconds=seconds_ago)).isoformat(),
        shards_done=1,
        shards_total=3,
        rows_done=2,
        samples_ok=2,
        samples_error=0,
        tokens=10,
        nfe=6,
        rate_tokens_s=12.5,
        workers=2,
        finished=finished,
    )


def opened(planned: PlannedJob) -> OpenJob:
    return OpenJob(store=planned.store, plan=planned.plan)


def test_a_job_that_nobody_ran_is_planned(tmp_path: Path) -> None:
    status = read_status(opened(planned_job(tmp_path, rows=prompts(5))), now=NOW)
    assert (status.state, status.shards, status.shards_total) == ("planned", 0, 3)
    assert (status.rows, status.rows_total) == (0, 5)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        (presence(), "running"),
        (presence(seconds_ago=STALE_S + 1), "stopped"),
        (presence(finished=True), "stopped"),
        (None, "stopped"),
    ],
)
def test_a_begun_job_runs_while_a_driver_speaks(
    tmp_path: Path, said: Presence | None, state: str
) -> None:
    planned = planned_job(tmp_path, rows=prompts(5))
    commit(planned, shards=[0])
    if said is not None:
        write_presence(planned.store, said)
    status = read_status(opened(planned), now=NOW)
    assert (status.state, status.shards, status.rows, status.ok) == (state, 1, 2, 2)


def test_figures_of_a_driver_are_shown_while_it_runs_only(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(5))
    write_presence(planned.store, presence())
    job = opened(planned)
    running = read_status(job, now=NOW)
    later = read_status(job, now=NOW + timedelta(seconds=2 * STALE_S))
    assert (running.tokens_per_second, running.workers) == (12.5, 2)
    assert (later.tokens_per_second, later.workers, later.state) == (None, None, "stopped")
    assert ("tokens/s", "12.5, 2 workers") in running.lines()


def test_the_plain_values_have_what_the_driver_says(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(5))
    said = presence().model_copy(update={"eta_s": 90.0})
    write_presence(planned.store, said)
    status = read_status(opened(planned), now=NOW)
    values = status.to_json()
    assert (values["eta_s"], values["workers"], values["missing"]) == (90.0, 2, "0-2")
    assert values["running"]["tokens"] == 10
    assert ("time left", "about 1 min 30 s") in status.lines()
    assert status.line().startswith("running: 1 of 3 shards, 2 rows")


def test_a_sealed_job_is_complete_whatever_was_said(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    write_presence(job.store, presence())
    assert read_status(job, now=NOW).state == "complete"


def test_all_shards_without_a_seal_are_not_complete_yet(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    commit(planned, shards=[0, 1])
    assert read_status(opened(planned), now=NOW).state == "stopped"
    seal_job(planned.store, planned.plan)
    assert read_status(opened(planned), now=NOW).state == "complete"


def test_a_retry_that_is_not_complete_opens_a_sealed_job_again(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(5))
    assert (read_status(job, now=NOW).revision, read_status(job, now=NOW).missing) == (0, "")
    retry_job(job, RetryRequest(shards=(0, 2)))
    status = read_status(job, now=NOW)
    assert (status.state, status.revision, status.missing) == ("stopped", 1, "0,2")
    assert (status.rows, status.shards) == (5, 3)
    assert ("revision", "1 (a retry)") in status.lines()
    assert not status.appends


def test_failed_attempts_are_counted(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    failure = Failure(
        shard=1,
        attempt="0" * 16,
        kind="rows",
        error_class="E",
        message="m",
        worker="w",
        time=NOW.isoformat(),
    )
    write_failure(planned.store, failure)
    assert read_status(opened(planned), now=NOW).failures == 1


def test_there_is_no_job_in_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(NoJobError, match=f"^{tmp_path}: there is no job here"):
        open_job(str(tmp_path))


def test_a_damaged_plan_is_not_taken_for_a_missing_one(tmp_path: Path) -> None:
    finished_job(tmp_path, rows=prompts(1))
    (tmp_path / "out" / "plan.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"plan\.json"):
        open_job(str(tmp_path / "out"))


def test_records_that_the_seal_names_are_the_ones_that_count(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    committed = read_committed(job)
    assert committed.complete
    assert committed.seal is not None
    assert [record.data_key for record in committed.records.values()] == [
        shard.data_key for shard in committed.seal.shards
    ]
