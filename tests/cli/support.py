"""Running verbs inside the test process."""

from pathlib import Path

from click.testing import CliRunner, Result

from jobs.cli.group import cli


def spotbatch(*arguments: str | Path) -> Result:
    """Invoke a verb; stdout and stderr are apart."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def complaint(result: Result) -> str:
    """The one sentence of a refused command: exit code 2, nothing on stdout, one line."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    return line
