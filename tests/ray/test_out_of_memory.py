"""A worker whose memory does not hold the batch goes on with a smaller one, through the CLI."""

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.jobs.support import write_rows
from tests.twins import write_sdar_twin

pytestmark = [pytest.mark.ray, pytest.mark.models]
COMMAND = Path(sysconfig.get_path("scripts")) / "spotbatch"
ROOM = 3

# Python runs this at the start of every process that finds it; it only touches the module that
# evaluates units, once that is imported.
SITE_CUSTOMIZE = f"""
import importlib.abc, importlib.machinery, sys

class Tighten(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "spot.targets.paged":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            import torch
            hidden = module.PagedTarget.hidden

            def tight(self, units, pages):
                if len(units) > {ROOM}:
                    raise torch.OutOfMemoryError("no room on purpose")
                return hidden(self, units, pages)

            module.PagedTarget.hidden = tight

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Tighten())
"""


def _job(folder: Path, *, address: str) -> Path:
    rows = [{"prompt": f"say {i} and then something of another length {'x' * i}"} for i in range(9)]
    write_rows(folder / "prompts.jsonl", rows)
    write_sdar_twin(folder / "twin")
    path = folder / "job.yaml"
    path.write_text(
        f"input: {{uri: {folder / 'prompts.jsonl'}}}\n"
        f"target: {{path: {folder / 'twin'}}}\n"
        f"output: {{uri: {folder / 'roomy'}}}\n"
        "decode: {max_tokens: 12, numerics: fast}\n"  # fast: the probe would ask for more room
        "shards: {rows: 3}\n"
        f"cluster: {{batch: 6, address: '{address}'}}\n"
    )
    return path


def _run(job: Path, out: Path, *, tight: Path | None = None) -> None:
    command = [str(COMMAND), "run", str(job), "--set", f"output.uri={out}"]
    if tight:
        command += ["--set", f"cluster.env={{PYTHONPATH: {tight}}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _digest(out: Path) -> str:
    command = [str(COMMAND), "stats", str(out), "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return str(json.loads(told.stdout)["tokens_digest"])


def _out_of_memory(out: Path) -> int:
    records = [json.loads(path.read_text()) for path in (out / "commits").rglob("*.json")]
    return sum(record["counters"]["out_of_memory"] for record in records)


def test_a_batch_that_does_not_fit_is_halved_and_the_outputs_are_the_same(
    tmp_path: Path, cluster_address: str
) -> None:
    job, tight = _job(tmp_path, address=cluster_address), tmp_path / "tight"
    tight.mkdir()
    (tight / "sitecustomize.py").write_text(SITE_CUSTOMIZE)
    _run(job, tmp_path / "roomy")
    _run(job, tmp_path / "cramped", tight=tight)
    assert _out_of_memory(tmp_path / "roomy") == 0
    assert 0 < _out_of_memory(tmp_path / "cramped") <= 4  # halvings; then it is remembered
    assert _digest(tmp_path / "cramped") == _digest(tmp_path / "roomy")
