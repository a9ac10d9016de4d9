"""`spotbatch schema`."""

import click

from jobs.cli.options import print_json


@click.command("schema")
@click.option("--markdown", is_flag=True, help="Print the reference page instead.")
def command(*, markdown: bool) -> None:
    """Print the JSON schema of job files: every setting with type, default, unit and kind.

    Saved as a file, it makes editors complete and check job files (in YAML, as the first line:
    # yaml-language-server: $schema=job-schema.json).
    """
    from jobs.job_schema import job_schema, reference_page

    if markdown:
        click.echo(reference_page(), nl=False)
    else:
        print_json(job_schema())
