"""The command that prints the output of tasks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import click

from taskyard.cli import screen
from taskyard.cli.complete import task_ids
from taskyard.cli.selection import combined, selection_options
from taskyard.cli.session import with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.names import last_segment
from taskyard.task import LogEntry, LogLevel, LogSource

# Logs that are followed at a time; each takes one of the tenant's streams.
MAX_TASKS = 100


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=task_ids)
@selection_options("Tasks that match.")
@click.option("--follow", "-F", is_flag=True, help="Follow until the tasks have ended.")
@click.option("--tail", "-n", type=click.IntRange(0, 10000), default=0, help="Only the last N lines of each.")
@click.option("--since", type=DURATION, metavar="DURATION", help="Only lines of the last 90s, 5m or 2h.")
@click.option(
    "--level",
    type=click.Choice([level.name.lower() for level in LogLevel if level], case_sensitive=False),
    help="Only lines of this level and above.",
)
@click.option("--run", "generation", type=click.IntRange(0), default=0, help="Only this run.")
@click.option("--timestamps", "--times", "-t", "times", is_flag=True, help="Put the time before each line.")
@click.option(
    "--prefix/--no-prefix", default=None, help="Put the task before each line.  [default: of several tasks]"
)
@with_client
async def logs(
    client: Client,
    tasks: tuple[str, ...],
    filter_: str,
    labels: tuple[tuple[str, str], ...],
    follow: bool,
    tail: int,
    since: float | None,
    level: str | None,
    generation: int,
    times: bool,
    prefix: bool | None,
) -> None:
    """Print the output of tasks.

    Standard output of a task goes to standard output, its standard error to standard error. The tasks are
    those that are named and those that match; with --follow their lines are mixed as they arrive, otherwise
    one task follows the other.

    \b
    Examples:
      taskyard logs encode-17
      taskyard logs -F -n 20 encode-17
      taskyard logs -l team=video --since 10m --timestamps
    """
    named = list(dict.fromkeys(tasks))
    wanted = combined(filter_, labels)
    if wanted:
        named += [task.name async for task in client.list(wanted, order_by="metadata.create_time")]
    if not named and not wanted:
        raise click.UsageError("name tasks, or give a --filter or a label with -l")
    if follow and len(named) > MAX_TASKS:
        raise click.UsageError(f"{len(named)} tasks match; at most {MAX_TASKS} are followed at a time")
    begin = datetime.now(UTC) - timedelta(seconds=since) if since is not None else None
    with_prefix = len(named) > 1 if prefix is None else prefix
    width = max((len(last_segment(name)) for name in named), default=0)

    async def entries(task: str) -> AsyncIterator[LogEntry]:
        stream = client.logs(
            task,
            follow=follow,
            tail=0 if begin else tail,
            generation=generation,
            min_level=LogLevel[level.upper()] if level else LogLevel.UNSPECIFIED,
        )
        recent: list[LogEntry] = []
        async for entry in stream:
            if begin and entry.time and entry.time < begin:
                continue
            if begin and tail and not follow:
                recent = [*recent, entry][-tail:]
            else:
                yield entry
        for entry in recent:
            yield entry

    async def print_log(task: str) -> None:
        name = f"{last_segment(task).ljust(width)}  " if with_prefix else ""
        async for entry in entries(task):
            print_entry(entry, times, name)

    if follow:
        async with asyncio.TaskGroup() as group:
            for task in named:
                group.create_task(print_log(task))
    else:
        for task in named:
            await print_log(task)


def print_entry(entry: LogEntry, times: bool = False, name: str = "") -> None:
    """Prints one line of a task to standard output or standard error, as the task wrote it."""
    time = f"{screen.format_time(entry.time, True)} " if times else ""
    to_stderr = entry.source in (LogSource.STDERR, LogSource.RUNNER)
    stream = sys.stderr if to_stderr else sys.stdout
    prefix = screen.dim(name) if name else ""
    print(f"{prefix}{time}{screen.shown(entry.message, stream)}", file=stream, flush=True)
