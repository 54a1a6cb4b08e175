"""Commands that follow tasks: watch, logs, wait."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import click

from taskyard.cli import screen
from taskyard.cli.failure import FAILED, TIME_UP, CommandFailed
from taskyard.cli.progress import Bar
from taskyard.cli.read import exact_option, output_option
from taskyard.cli.session import with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.task import Event, EventType, LogEntry, LogSource, Phase, Task

GAP = (
    "changes may be missing here: the database was replaced by a standby or a backup that lacks some; "
    "tasks that differ are shown as they are now"
)


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option("--filter", "-f", "filter_", default="", metavar="EXPRESSION", help="Only tasks that match.")
@click.option("--snapshot", is_flag=True, help="Begin with the existing tasks.")
@output_option("text", "json")
@exact_option
@with_client
async def watch(
    client: Client, tasks: tuple[str, ...], filter_: str, snapshot: bool, output: str, exact: bool
) -> None:
    """Show changes as they happen.

    Follows the named tasks until they have ended, or all tasks until Ctrl-C.

    \b
    Examples:
      taskyard watch
      taskyard watch encode-17
      taskyard watch -f 'spec.task_type = "encode"' -o json
    """
    for task in tasks:
        await client.get(task, view="name")
    stream = client.watch(
        *tasks, filter=filter_, snapshot=snapshot or bool(tasks), until_terminal=bool(tasks)
    )
    async for event in stream:
        if event.type is EventType.GAP:
            click.echo(GAP, err=True)
            continue
        click.echo(screen.json_line(event.proto) if output == "json" else _event_line(event, exact))


def _event_line(event: Event, exact: bool) -> str:
    time = event.time or datetime.now(UTC)
    shown = screen.format_time(time, True) if exact else f"{time.astimezone():%H:%M:%S}"
    status = event.proto.status
    phase = "deleted" if event.type is EventType.DELETED else str(event.phase)
    more = ""
    if event.phase is Phase.RUNNING and status.progress.percent:
        more = screen.clean(f"{status.progress.percent}% {status.progress.message}")
    if event.phase not in (Phase.SUCCEEDED, Phase.RUNNING) and status.error.code:
        more = screen.clean(f"{status.error.code}: {status.error.message}")
    line = f"{screen.dim(shown)}  {event.task.id}  {screen.paint(phase, phase)}"
    return f"{line}{' ' * (14 - len(phase))}  {more}" if more else line


@click.command()
@click.argument("task")
@click.option("--follow", "-f", is_flag=True, help="Follow until the task has ended.")
@click.option("--tail", "-n", type=click.IntRange(0, 10000), default=0, help="Only the last N lines.")
@click.option("--run", "generation", type=click.IntRange(0), default=0, help="Only this run.")
@click.option("--times", "-t", is_flag=True, help="Put the time before each line.")
@with_client
async def logs(client: Client, task: str, follow: bool, tail: int, generation: int, times: bool) -> None:
    """Print the output of a task.

    Its standard output goes to standard output, its standard error to standard error.

    \b
    Examples:
      taskyard logs encode-17
      taskyard logs -f -n 20 encode-17
    """
    async for entry in client.logs(task, follow=follow, tail=tail, generation=generation):
        print_entry(entry, times)


def print_entry(entry: LogEntry, times: bool = False) -> None:
    """Prints one line of a task to standard output or standard error, as the task wrote it."""
    prefix = f"{screen.format_time(entry.time, True)} " if times else ""
    to_stderr = entry.source in (LogSource.STDERR, LogSource.RUNNER)
    stream = sys.stderr if to_stderr else sys.stdout
    print(f"{prefix}{screen.shown(entry.message, stream)}", file=stream, flush=True)


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option("--filter", "-f", "filter_", default="", metavar="EXPRESSION", help="Live tasks that match.")
@click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest wait.")
@with_client
async def wait(client: Client, tasks: tuple[str, ...], filter_: str, timeout: float | None) -> int:
    """Wait until tasks have ended.

    Waits for the named tasks and for the live tasks that match the filter. The exit code is 0 if all have
    succeeded, 1 otherwise, 124 after the timeout.

    \b
    Examples:
      taskyard wait encode-17 encode-18
      taskyard wait --timeout 5m encode-17 && echo done
      taskyard wait --filter 'metadata.labels.team = "video"'
    """
    named = list(dict.fromkeys(tasks))
    if filter_:
        named += [task.name async for task in client.list(filter_, phase="live", view="name")]
    if not named and not filter_:
        raise click.UsageError("name tasks, or give a --filter")
    well = ended = 0
    try:
        with Bar("Waiting for tasks", len(named)) as bar:
            async with asyncio.timeout(timeout):
                async for batch in client.wait_all(named).batches:
                    ended += len(batch)
                    well += sum(task.phase is Phase.SUCCEEDED for task in batch)
                    bar.echo(map(outcome_line, batch))
                    bar.reached(ended)
    except TimeoutError:
        left = f"{named[0]} is" if len(named) == 1 else f"{len(named) - ended} of {len(named)} tasks are"
        raise CommandFailed(
            f"{left} still live after {screen.span(timedelta(seconds=timeout or 0))}", TIME_UP
        ) from None
    return 0 if well == len(named) else FAILED


def outcome_line(task: Task) -> str:
    """How a task ended, on one line."""
    parts = [task.id, screen.paint(str(task.phase), str(task.phase))]
    if task.phase is not Phase.SUCCEEDED and task.error:
        parts.append(screen.clean(f"{task.error.code}: {task.error.message}".strip(": ")))
    return "  ".join(parts)
