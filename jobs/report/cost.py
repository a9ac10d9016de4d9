"""What a job cost, for its report."""

from jobs.durations import duration
from jobs.stats import JobStats
from manifests.job import JobSpec


def cost_lines(stats: JobStats, *, job: JobSpec) -> list[tuple[str, str]]:
    """Seconds of workers and GPUs, forwards, positions and tokens, as names and values."""
    lines = [("time of workers", f"{stats.engine_s:,.1f} s, all workers together")]
    gpus = job.cluster.gpus_per_worker
    if gpus:
        lines.append(("GPU time", f"{stats.engine_s * gpus:,.1f} s, {gpus:g} a worker as planned"))
    lines.append(
        ("time of decoding", f"{duration(stats.decoding_s)}, with a worker or more at work")
    )
    if parts := _parts(stats):
        lines.append(("spent in", parts))
    lines += [
        ("forwards", f"{stats.forwards:,} of whole batches"),
        ("positions", f"{stats.positions:,}"),
        ("tokens", f"{stats.tokens:,}{_per_worker(stats)}"),
    ]
    if stats.prefix_hit_rate is not None:
        lines.append(("prefix pages", f"{stats.prefix_hit_rate:.0%} of those asked for were there"))
    return lines


def _parts(stats: JobStats) -> str:
    parts = {"target": stats.target_s, "drafter": stats.drafter_s, "host": stats.host_s}
    total_s = sum(parts.values())
    if not total_s:
        return ""
    return ", ".join(f"{name} {part_s / total_s:.0%}" for name, part_s in parts.items())


def _per_worker(stats: JobStats) -> str:
    return f", {stats.tokens / stats.engine_s:,.1f} a second of a worker" if stats.engine_s else ""
