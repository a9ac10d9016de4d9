"""`spotbatch completion`."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that teaches a shell to complete verbs, options and settings.

    \b
    bash, zsh:  eval "$(spotbatch completion bash)"   (in ~/.bashrc or ~/.zshrc)
    fish:       spotbatch completion fish > ~/.config/fish/completions/spotbatch.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three shells"
    root = ctx.find_root()
    click.echo(kind(root.command, {}, "spotbatch", "_SPOTBATCH_COMPLETE").source())
