"""What a data file says about itself, so that a lone file can be traced to its job and rule."""

import json

from manifests import columns
from manifests.distribution import distribution_preserving
from manifests.job import JobSpec
from manifests.plan import Plan
from manifests.rules import RULES
from workers.shard_assembly import ShardAssembly


def file_metadata(
    plan: Plan,
    *,
    job: JobSpec,
    assembly: ShardAssembly,
    plan_sha256: str,
    versions: dict[str, str],
    revision: int = 0,
    copied: str | None = None,
) -> dict[str, str]:
    """Parquet file metadata of one attempt at one shard; `job` has this run's settings.

    `copied` is what the file that rows were copied from says about the distribution.
    """
    return {
        columns.METADATA_JOB: plan.job_id,
        columns.METADATA_SHARD: str(assembly.shard.shard),
        columns.METADATA_REVISION: str(revision),
        columns.METADATA_ATTEMPT: assembly.attempt,
        columns.METADATA_PLAN_SHA256: plan_sha256,
        columns.METADATA_VERSIONS: json.dumps(versions, sort_keys=True),
        columns.METADATA_RULE: job.decode.model_dump_json(),
        columns.METADATA_CONFIDENCE: RULES[job.decode.rule].confidence,
        columns.METADATA_DISTRIBUTION_PRESERVING: _distribution(job, copied=copied),
    }


def _distribution(job: JobSpec, *, copied: str | None) -> str:
    """Of all rows of the file: one part that does not keep it speaks for the whole."""
    preserving, reason = distribution_preserving(job)
    if preserving and copied is not None:
        return copied
    return f"{str(preserving).lower()}: {reason}"
