"""`spotbatch validate`."""

from pathlib import Path

import click

from jobs.cli.options import job_file_arguments, load, warn


@click.command("validate")
@job_file_arguments
def command(job_file: Path, overrides: tuple[str, ...]) -> None:
    """Check a job file, its input, target, drafter and scorer; writes nothing."""
    from jobs.planning import preview_job

    job = load(job_file, overrides)
    preview = preview_job(job)
    warn(preview.models.warnings)
    staged = preview.staged
    trouble = "".join(f", {count} {name}" for name, count in sorted(staged.trouble.items()))
    click.echo(
        f"{job_file} is valid: {staged.rows} rows in {len(staged.shards)} shards, "
        f"{staged.trouble.total()} of them will be error rows{trouble}"
    )
    if staged.first_trouble:
        click.echo(f"first error row: {staged.first_trouble}", err=True)
