"""The files for clusters: valid, safe, and with commands that exist."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from jobs.cli.group import cli

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cluster"
RAYJOB: dict[str, Any] = yaml.safe_load((FOLDER / "rayjob.yaml").read_text())
SBATCH = (FOLDER / "job.sbatch").read_text()


def pods() -> list[dict[str, Any]]:
    """Pod specifications of the RayJob: head first."""
    cluster = RAYJOB["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


def require_options(command: str) -> None:
    """Fail unless the verb exists and has the options that are used."""
    words = shlex.split(command)
    assert words[0] == "spotbatch"
    verb = cli.get_command(click.Context(cli), words[1])
    assert verb is not None, words[1]
    known = {option for param in verb.params for option in param.opts}
    assert {word for word in words[2:] if word.startswith("--")} <= known


def test_the_rayjob_runs_a_planned_job_inside_its_cluster() -> None:
    assert (RAYJOB["apiVersion"], RAYJOB["kind"]) == ("ray.io/v1", "RayJob")
    entrypoint = RAYJOB["spec"]["entrypoint"]
    require_options(entrypoint)
    assert entrypoint.endswith("--set cluster.address=auto")


def test_a_head_that_is_asked_to_leave_drains_first_and_has_the_time() -> None:
    head = pods()[0]
    (container,) = head["containers"]
    command = container["lifecycle"]["preStop"]["exec"]["command"][-1]
    drain, wait = command.split("; ")
    assert drain == f"spotbatch drain {RAYJOB['spec']['entrypoint'].split()[2]}"
    assert int(wait.removeprefix("sleep ")) < head["terminationGracePeriodSeconds"]


def test_no_manifest_holds_a_secret_and_tokens_are_asked_for() -> None:
    for pod in pods():
        for container in pod["containers"]:
            environment = {entry["name"]: entry for entry in container["env"]}
            assert environment["RAY_AUTH_MODE"]["value"] == "token"
            assert "secretKeyRef" in environment["RAY_AUTH_TOKEN"]["valueFrom"]
            assert not any("AWS" in name for name in environment)


def test_the_versions_of_ray_fit_what_the_package_needs() -> None:
    version = RAYJOB["spec"]["rayClusterSpec"]["rayVersion"]
    assert tuple(map(int, version.split("."))) >= (2, 54, 0)


def test_the_batch_script_is_valid_bash() -> None:
    done = subprocess.run(["bash", "-n", FOLDER / "job.sbatch"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_batch_script_drains_before_its_time_is_up() -> None:
    command = re.search(r"^spotbatch run .*?--stop-after \S+", SBATCH, re.MULTILINE | re.DOTALL)
    assert command is not None
    require_options(command[0].replace("\\\n", ""))
    hours, minutes = map(int, re.findall(r"--time=(\d+):(\d+)", SBATCH)[0])
    stop = re.fullmatch(r"(\d+)h(\d+)m", command[0].split()[-1])
    assert stop is not None
    assert 5 <= (hours * 60 + minutes) - (int(stop[1]) * 60 + int(stop[2])) <= 30


STUBS = {
    "scontrol": 'echo "node1"; echo "node2"',
    # The nodes come up at once; what would be run there is written down.
    "srun": 'echo "srun $*" >> "$NOTES"',
    "ray": "exit 0",
    "spotbatch": 'echo "spotbatch $*" >> "$NOTES"; exit "$CODE"',
}


@pytest.mark.parametrize(("code", "ends_with"), [(0, 0), (3, 0), (1, 1), (2, 2)])
def test_the_batch_script_starts_one_cluster_and_passes_on_how_the_run_ended(
    tmp_path: Path, code: int, ends_with: int
) -> None:
    for name, text in STUBS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    notes = tmp_path / "notes"
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "NOTES": str(notes),
        "CODE": str(code),
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_CPUS_PER_TASK": "8",
        "SLURM_GPUS_PER_TASK": "1",
    }
    done = subprocess.run(
        ["bash", FOLDER / "job.sbatch", "/shared/job"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ends_with, done.stderr
    written = notes.read_text()
    assert "ray start --head --node-ip-address=node1" in written
    assert (
        "--nodes=1 --ntasks=1 --exclude=node1 --overlap ray start --address=node1:6379" in written
    )
    assert "spotbatch run /shared/job --set cluster.address=node1:6379 --set cluster.workers=2" in (
        written
    )
