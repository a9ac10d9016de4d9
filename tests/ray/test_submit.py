"""Jobs submitted to the job server of a real cluster of two nodes that wants a token."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.reading import open_job, read_committed
from manifests.verification import verify_structure
from tests.jobs.support import prompts, write_job

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]
SCRIPTS = sysconfig.get_path("scripts")
LIMIT_S = 300.0
START_TRIES = 3
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 4}
NUM_SHARDS = 6


@pytest.fixture(scope="module")
def job_server() -> Iterator[str]:
    """The address of the job server."""
    process, url = start_cluster()
    try:
        yield url
    finally:
        process.communicate(timeout=LIMIT_S)  # closes stdin


def start_cluster() -> tuple[subprocess.Popen[str], str]:
    """A cluster that is up; Ray gives its agents little time, so a busy machine has more tries."""
    script = Path(__file__).with_name("cluster_process.py")
    environment = os.environ | TOKEN | {"PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"}
    for _ in range(START_TRIES):
        process = subprocess.Popen(
            [sys.executable, script],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:
            return process, json.loads(line)["url"]
        process.communicate(timeout=LIMIT_S)
    raise AssertionError("Ray does not start here")


def spotbatch(
    *arguments: str | Path, token: dict[str, str] = TOKEN
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(SCRIPTS) / "spotbatch", *arguments],
        env=os.environ | token,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


@pytest.mark.parametrize(
    "token", [{}, TOKEN | {"RAY_AUTH_TOKEN": "f" * 64}], ids=["none", "another"]
)
def test_without_the_clusters_token_a_submission_is_refused_in_one_sentence(
    job_server: str, tmp_path: Path, token: dict[str, str]
) -> None:
    job = write_job(tmp_path, rows=prompts(2), settings=["work: 'null'"])
    done = spotbatch("submit", job, "--address", job_server, token=token)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert "wants a token or refuses this one; set RAY_AUTH_MODE=token" in line


def test_a_submitted_job_is_run_by_workers_on_both_nodes_and_only_once(
    job_server: str, tmp_path: Path
) -> None:
    job = write_job(tmp_path, rows=prompts(2 * NUM_SHARDS), settings=["work: 'null'"])
    done = spotbatch("submit", job, "--address", job_server, "--set", "cluster.workers=2", "--wait")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    opened = open_job(str(out))
    name = f"spotbatch-{opened.plan.job_id}-a1"
    assert done.stdout.strip() == name
    assert f"--submission-id {name} --no-wait -- spotbatch run {out}" in done.stderr
    committed = read_committed(opened)
    assert committed.complete
    assert verify_structure(opened.store) == []
    assert len({record.worker for record in committed.records.values()}) == 2

    again = spotbatch("submit", out, "--address", job_server)
    assert (again.returncode, again.stdout) == (0, "")
    assert "is complete; nothing is submitted" in again.stderr

    log = spotbatch("logs", out, "--driver", "--address", job_server)
    assert f"{NUM_SHARDS} of {NUM_SHARDS} shards" in log.stdout


def test_the_exit_code_of_the_driver_is_that_of_a_waiting_submission(
    job_server: str, tmp_path: Path
) -> None:
    rows = [{"id": name, "prompt": None} for name in "ab"]
    job = write_job(tmp_path, rows=rows, settings=["work: 'null'"])
    done = spotbatch("submit", job, "--address", job_server, "--wait")
    assert done.returncode == 1, done.stderr
    assert "2 of 2 samples are errors" in done.stderr
