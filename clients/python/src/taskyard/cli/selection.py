"""Which tasks a command is about: --filter and -l, and the question before many of them are changed."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from taskyard.cli import screen
from taskyard.cli.failure import USAGE, CommandFailed
from taskyard.cli.values import PAIR

if TYPE_CHECKING:
    from taskyard.client import Client

# The server counts no further.
COUNT_LIMIT = 100_000


def selection_options(about: str = "Only tasks that match.") -> Callable[[Any], Any]:
    """The options --filter and -l, as one argument `filter_` that holds for both."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--filter",
            "filter_",
            default="",
            metavar="EXPRESSION",
            help=about,
        )(command)
        return click.option(
            "--label",
            "-l",
            "labels",
            type=PAIR,
            multiple=True,
            help="Only tasks with this label; repeatable.",
        )(command)

    return add


def combined(filter_: str, labels: tuple[tuple[str, str], ...], phase: str | None = None) -> str:
    """One filter for the options; empty if none of them is given."""
    from taskyard.reader import all_of

    return all_of(filter_, phase, _mapping(labels))


def _mapping(labels: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(labels)


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Change nothing; show the tasks.")


async def agreed(client: Client, filter_: str, verb: str, *, yes: bool, dry_run: bool) -> bool:
    """Whether to change the tasks that match: shows how many, and asks. A dry run lists them instead.

    Raises CommandFailed where nobody can be asked and --yes is not given.
    """
    count = await client.count(filter_)
    about = f"at least {COUNT_LIMIT:,} tasks" if count >= COUNT_LIMIT else screen.plural(count, "task")
    if dry_run:
        async for batch in client.list(filter_, view="name").batches:
            click.echo("".join(f"{task.id}\n" for task in batch), nl=False)
        click.echo(f"{about} would be {verb} (dry run: nothing was changed)", err=True)
        return False
    if not count:
        click.echo("No task matches.", err=True)
        return False
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandFailed(
            f"{about} would be {verb}; give --yes, or look at them with --dry-run first", USAGE
        )
    if not click.confirm(f"{about[0].upper()}{about[1:]} will be {verb}. Continue?", err=True):
        raise click.Abort
    return True


async def ids_of(client: Client, filter_: str, phase: str | None = None) -> AsyncGenerator[str]:
    """The names of the tasks that match."""
    async for task in client.list(filter_, phase=phase, view="name"):
        yield task.name
