"""What `spotbatch plan` prints."""

from jobs.planning import PlannedJob, Preview
from manifests.job import JobSpec

_PROMPT_CHARACTERS = 200


def preview_lines(job: JobSpec, preview: Preview) -> list[tuple[str, str]]:
    """A plan that was not stored, as names and values."""
    staged = preview.staged
    trouble = "".join(f", {count} {name}" for name, count in sorted(staged.trouble.items()))
    decoded = (staged.rows - staged.trouble.total()) * job.sampling.n
    lines = [
        ("rows", str(staged.rows)),
        ("error rows", f"{staged.trouble.total()}{trouble}"),
        ("shards", f"{len(staged.shards)} of up to {job.shards.rows} rows"),
        ("samples", f"{decoded} to decode"),
        ("tokens", f"at most {decoded * job.decode.max_tokens}"),
        ("target", f"{len(preview.models.target)} files in {job.target.path}"),
        ("drafter", _drafter(job)),
        ("output", f"{job.output.uri} (nothing was written; --write creates the plan)"),
    ]
    first = staged.first_row
    if first is not None:
        prompt = first.prompt or first.messages or first.error_message or ""
        lines.append((f"row {first.id}", repr(prompt[:_PROMPT_CHARACTERS])))
    return lines


def _drafter(job: JobSpec) -> str:
    named = (job.drafter.method, job.drafter.path)
    return " ".join(name for name in named if name is not None) or "none"


def plan_lines(planned: PlannedJob) -> list[tuple[str, str]]:
    """A stored plan, as names and values."""
    plan = planned.plan
    return [
        ("job", f"{plan.job_id}{'' if planned.created else ' (was planned already)'}"),
        ("rows", str(plan.rows)),
        ("shards", str(len(plan.shards))),
        ("fingerprint", plan.fingerprint),
        ("output", planned.store.uri),
    ]
