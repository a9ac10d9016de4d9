"""Planned jobs of one-row shards without a model, on a local store or on S3."""

import json
from pathlib import Path

from jobs.planning import PlannedJob, plan_job
from manifests.documents import encode
from manifests.job import JobSpec
from manifests.keys import commit_key, data_key
from manifests.plan import Plan, plan_hash
from manifests.records import CommitRecord


def null_job(folder: Path, *, num_shards: int, uri: str | None = None) -> JobSpec:
    """The specification of a job of one row a shard, with its prompts written."""
    prompts = folder / "prompts.jsonl"
    with prompts.open("w") as file:
        for row in range(num_shards):
            file.write(json.dumps({"prompt": f"say {row}"}) + "\n")
    return JobSpec.model_validate(
        {
            "work": "null",
            "input": {"uri": str(prompts)},
            "target": {"path": str(_any_model())},
            "output": {"uri": uri or str(folder / "job")},
            "shards": {"rows": 1},
        }
    )


def _any_model() -> Path:
    """Planning looks at the target's files; null work never loads it."""
    return Path(__file__).resolve().parents[1] / "examples" / "tiny" / "target"


def planned_job(folder: Path, *, num_shards: int, uri: str | None = None) -> PlannedJob:
    """The same, planned."""
    return plan_job(null_job(folder, num_shards=num_shards, uri=uri))


def record_of(plan: Plan, shard: int, *, plan_sha256: str) -> CommitRecord:
    """A commit record as null work leaves it; there is no data file behind it."""
    attempt = f"{shard:016x}"
    return CommitRecord(
        shard=shard,
        attempt=attempt,
        data_key=data_key(shard, attempt),
        rows=1,
        samples=1,
        ok=1,
        errors=0,
        bytes=1,
        sha256="0" * 64,
        row_ids_sha256="0" * 64,
        schema_fingerprint="0" * 64,
        plan_sha256=plan_sha256,
        versions=plan.versions,
        counters={"tokens": 1, "nfe": 1},
        engine_s=0.0,
        worker="worker-0001@host",
        committed=plan.created,
    )


def encoded_records(plan: Plan, *, num_records: int) -> list[tuple[str, bytes]]:
    """Keys and bytes of the first records."""
    plan_sha256 = plan_hash(plan)
    return [
        (commit_key(shard), encode(record_of(plan, shard, plan_sha256=plan_sha256)))
        for shard in range(num_records)
    ]
