"""What `spotbatch plan` prints."""

from typing import Any

from jobs.estimates import Estimate
from jobs.planning import PlannedJob, Preview
from jobs.staging import StagedInput
from manifests.job import JobSpec

_PROMPT_CHARACTERS = 200


def num_samples_to_decode(job: JobSpec, preview: Preview) -> int:
    """Samples of rows that planning found nothing wrong with."""
    return (preview.staged.rows - preview.staged.trouble.total()) * job.sampling.n


def preview_lines(
    job: JobSpec, preview: Preview, *, expected: Estimate | None = None
) -> list[tuple[str, str]]:
    """A plan that was not stored, as names and values."""
    staged = preview.staged
    trouble = "".join(f", {count} {name}" for name, count in sorted(staged.trouble.items()))
    decoded = num_samples_to_decode(job, preview)
    lines = [
        ("rows", f"{staged.rows}{_dropped(staged)}"),
        ("digest", staged.digest.hexdigest()),
        ("error rows", f"{staged.trouble.total()}{trouble}"),
        ("shards", f"{len(staged.shards)} of up to {job.shards.rows} rows"),
        ("samples", f"{decoded} to decode"),
        ("tokens", f"at most {staged.max_tokens * job.sampling.n}"),
        *_expected(job, expected),
        ("target", f"{len(preview.models.target)} files in {job.target.path}"),
        ("drafter", _drafter(job)),
        ("output", f"{job.output.uri} (nothing was written; --write creates the plan)"),
    ]
    prompt = _first_prompt(preview)
    if prompt is not None:
        lines.append((f"row {prompt['id']}", repr(str(prompt["prompt"])[:_PROMPT_CHARACTERS])))
    return lines


def preview_json(
    job: JobSpec, preview: Preview, *, expected: Estimate | None = None
) -> dict[str, Any]:
    """The same as plain values."""
    staged = preview.staged
    decoded = num_samples_to_decode(job, preview)
    return {
        "job": None,
        "created": False,
        "uri": job.output.uri,
        "rows": staged.rows,
        "rows_sha256": staged.digest.hexdigest(),
        "error_rows": dict(sorted(staged.trouble.items())),
        "shards": len(staged.shards),
        "samples": decoded,
        "max_tokens": staged.max_tokens * job.sampling.n,
        "fingerprint": None,
        "expected": None if expected is None else expected.to_json(),
        "first_row": _first_prompt(preview),
    }


def _dropped(staged: StagedInput) -> str:
    return f" ({staged.dropped} more dropped by input.filter)" if staged.dropped else ""


def _rows_have_budgets(job: JobSpec) -> bool:
    return job.input.columns.max_tokens is not None or job.input.format == "openai"


def _expected(job: JobSpec, expected: Estimate | None) -> list[tuple[str, str]]:
    return [] if expected is None else expected.lines(num_workers=job.cluster.workers)


def _first_prompt(preview: Preview) -> dict[str, str] | None:
    first = preview.staged.first_row
    if first is None:
        return None
    return {"id": first.id, "prompt": first.prompt or first.messages or first.error_message or ""}


def _drafter(job: JobSpec) -> str:
    named = (job.drafter.method, job.drafter.path)
    return " ".join(name for name in named if name is not None) or "none"


def plan_lines(planned: PlannedJob, *, expected: Estimate | None = None) -> list[tuple[str, str]]:
    """A stored plan, as names and values."""
    plan = planned.plan
    return [
        ("job", f"{plan.job_id}{'' if planned.created else ' (was planned already)'}"),
        ("rows", str(plan.rows)),
        ("digest", plan.rows_sha256),
        ("shards", str(len(plan.shards))),
        *_expected(plan.job, expected),
        ("fingerprint", plan.fingerprint),
        ("output", planned.store.uri),
    ]


def plan_json(planned: PlannedJob, *, expected: Estimate | None = None) -> dict[str, Any]:
    """The same as plain values; what only a reading of the input says is None."""
    plan = planned.plan
    samples = plan.rows * plan.job.sampling.n
    return {
        "job": plan.job_id,
        "created": planned.created,
        "uri": planned.store.uri,
        "rows": plan.rows,
        "rows_sha256": plan.rows_sha256,
        "error_rows": None,
        "shards": len(plan.shards),
        "samples": samples,
        "max_tokens": None
        if _rows_have_budgets(plan.job)
        else samples * plan.job.decode.max_tokens,
        "fingerprint": plan.fingerprint,
        "expected": None if expected is None else expected.to_json(),
        "first_row": None,
    }
