"""The `spotbatch` command group: loads verbs when they are used and words their errors."""

import difflib
import errno
import importlib
import pkgutil

import click

import jobs.cli
from jobs.errors import JobError
from manifests.errors import ManifestError

# In the order of a job's life; a verb is there when its module is.
_ORDER = (
    *("schema", "validate", "plan", "run", "submit", "drain", "cancel", "status", "list", "logs"),
    *("inspect", "stats", "report", "verify", "retry", "extend", "gc", "files", "export"),
    *("drafter", "target", "completion"),
)
EXIT_USAGE = 2
EXIT_CANCELLED = 130


class Complaint(click.ClickException):
    """What the user can mend, as one sentence on stderr."""

    exit_code = EXIT_USAGE


class VerbGroup(click.Group):
    """Finds verbs as modules of `jobs.cli`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs that are there, in order."""
        present = {module.name for module in pkgutil.iter_modules(jobs.cli.__path__)}
        return [name for name in _ORDER if name in present]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"jobs.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one was meant."""
        near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
        if near and near[0] != args[0]:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a verb; errors of the user and of the machine become one sentence and exit code 2."""
        try:
            return super().invoke(ctx)
        except (ManifestError, JobError) as error:
            raise Complaint(str(error)) from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of our output has left
                raise
            raise Complaint(str(error)) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(EXIT_CANCELLED) from None


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spotbatch")
def cli() -> None:
    """Offline batch generation for diffusion language models."""
