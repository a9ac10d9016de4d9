"""Printing something that is looked at again and again."""

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

import click

Look = TypeVar("Look")


def follow(
    looks: Iterable[Look],
    *,
    line: Callable[[Look], str],
    table: Callable[[Look], list[tuple[str, str]]] | None = None,
) -> None:
    """A table that stays in place on a terminal; elsewhere one line whenever it changed."""
    if table is not None and sys.stdout.isatty():
        _redraw(looks, table=table)
        return
    last = None
    for look in looks:
        text = line(look)
        if text != last:
            click.echo(text)
        last = text


def _redraw(looks: Iterable[Look], *, table: Callable[[Look], list[tuple[str, str]]]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from jobs.report_table import format_lines

    with Live(console=Console(), auto_refresh=False) as live:
        for look in looks:
            live.update(Text(format_lines(table(look))), refresh=True)
