"""Decode 24 prompts at batch 1, drafting up to 20 states a round and not at all; print both.

Two ordinary jobs, run and read through the command line; the figures are those of
``spotbatch stats --json``, as they are. Run it again and both jobs are complete already.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

JOB = "examples/quickstart/job.yaml"
NUM_ROWS = 24
BUDGETS = (20, 0)
SPOTBATCH = str(Path(sysconfig.get_path("scripts")) / "spotbatch")
# label, field of `spotbatch stats --json`, format
FIGURES = (
    ("samples", "samples", "d"),
    ("tokens", "tokens", "d"),
    ("forwards per sample", "nfe_per_sample", ".2f"),
    ("draft-free forwards per sample", "draft_free_nfe_per_sample", ".2f"),
    ("tokens per forward", "tokens_per_forward", ".2f"),
    ("tokens per second", "tokens_per_second", ".1f"),
)


def overrides(budget: int) -> dict[str, object]:
    """What differs from the quickstart's job file."""
    return {
        "input.limit": NUM_ROWS,
        "shards.rows": NUM_ROWS,
        "cluster.workers": 1,
        "cluster.batch": 1,
        "decode.draft_budget": budget,
        "output.uri": f"out/quickstart-budget-{budget}",
    }


def run(budget: int) -> dict[str, Any]:
    """Run the job (its log goes to stderr) and return its statistics."""
    settings = overrides(budget)
    options = [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]
    _spotbatch("run", JOB, *options)
    stats: dict[str, Any] = json.loads(_spotbatch("stats", str(settings["output.uri"]), "--json"))
    return stats


def _spotbatch(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own command with our own arguments
        [SPOTBATCH, *arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    if done.returncode != 0:
        sys.exit(f"`spotbatch {' '.join(arguments)}` ended with exit code {done.returncode}")
    return done.stdout


def table(all_stats: dict[int, dict[str, Any]]) -> str:
    """One line a figure, one column a budget, and whether the tokens are the same."""
    first, second = all_stats
    rows = [f"{'batch 1, draft budget':<32}{first:>12}{second:>12}"]
    for label, field, spec in FIGURES:
        cells = "".join(f"{_cell(stats[field], spec):>12}" for stats in all_stats.values())
        rows.append(f"{label:<32}{cells}")
    same = len({stats["tokens_digest"] for stats in all_stats.values()}) == 1
    rows.append(f"{'same tokens':<32}{'yes' if same else 'NO':>12}")
    return "\n".join(rows)


def _cell(value: float | None, spec: str) -> str:
    return "-" if value is None else format(value, spec)


def main() -> None:
    """Run both jobs and print the table."""
    all_stats = {budget: run(budget) for budget in BUDGETS}
    print(table(all_stats))
    if len({stats["tokens_digest"] for stats in all_stats.values()}) != 1:
        sys.exit("the two budgets gave different tokens: that is a bug, please report it")


if __name__ == "__main__":
    main()
