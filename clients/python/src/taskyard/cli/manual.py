"""The command that shows the help of a command."""

from __future__ import annotations

import click

from taskyard.cli.pager import paged


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def show_help(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command.

    \b
    Example:
      taskyard help runners label
    """
    found = context.find_root()
    for word in words:
        group = found.command
        inner = group.get_command(found, word) if isinstance(group, click.Group) else None
        if inner is None:
            known = group.list_commands(found) if isinstance(group, click.Group) else []
            raise click.NoSuchCommand(word, possibilities=known, ctx=found)
        found = click.Context(inner, info_name=word, parent=found)
    with paged():
        click.echo(found.get_help())
