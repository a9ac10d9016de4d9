"""A job with a real model and real workers, from a directory with packages of our names."""

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

from manifests.hashing import sha256_file

pytestmark = [pytest.mark.cli, pytest.mark.ray]
COMMAND = Path(sysconfig.get_path("scripts")) / "spotbatch"
LIMIT_S = 120.0
NO_CLUSTER = "cluster.address=127.0.0.1:1"  # nothing listens there: to look for Ray is to fail


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A directory whose `jobs` and `workers` must not be imported."""
    folder = tmp_path / "foreign"
    for name in ("jobs", "workers"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise RuntimeError('a foreign package')\n")
    return folder


@pytest.fixture
def job_file(tmp_path: Path, repository: Path, tiny_target: Path, tiny_drafter: Path) -> Path:
    """A job of three rows in two shards; every path in it is absolute."""
    prompts = repository / "examples" / "quickstart" / "prompts.jsonl"
    job = {
        "input": {"uri": str(prompts), "limit": 3, "columns": {"id": "id"}},
        "target": {"path": str(tiny_target)},
        "drafter": {"path": str(tiny_drafter)},
        "decode": {"max_tokens": 32, "draft_budget": 8},
        "output": {"uri": str(tmp_path / "out")},
        "shards": {"rows": 2},
    }
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job))  # JSON is YAML
    return path


def spotbatch(*arguments: str | Path, cwd: Path) -> str:
    """What a command that must succeed prints on stdout."""
    done = subprocess.run(
        [COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def contents(folder: Path) -> dict[str, str]:
    """Every file of a job, by its hash."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): sha256_file(path) for path in files}


def test_a_job_is_run_verified_and_found_complete_among_foreign_packages(
    foreign: Path, job_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    table = spotbatch("run", job_file, cwd=foreign)
    assert table.splitlines()[0].split() == ["state", "complete"]

    verified = spotbatch("verify", out, "--replay", "2", cwd=foreign)
    assert "2 samples decoded again without drafts: 0 differ" in verified

    before = contents(out)
    again = spotbatch("run", job_file, "--set", NO_CLUSTER, cwd=foreign)
    head, _, rest = again.partition("\n")
    assert "is complete already; nothing was decoded" in head
    assert rest == table
    assert contents(out) == before
