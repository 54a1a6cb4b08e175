"""Commands that control tasks: cancel, pause, resume, retry, delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from taskyard import errors
from taskyard.cli import screen
from taskyard.cli.failure import FAILED, explain
from taskyard.cli.progress import Bar
from taskyard.cli.session import for_each, with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.names import last_segment
from taskyard.stream import Stream
from taskyard.task import Task

tasks_argument = click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
some_tasks_argument = click.argument("tasks", nargs=-1, metavar="[TASK]...")
filter_option = click.option(
    "--filter", "-f", "filter_", default="", metavar="EXPRESSION", help="All tasks that match."
)
reason_option = click.option("--reason", default="", help="Reason, for the audit log and the task.")


def grace_option(default: str) -> Callable[[Any], Any]:
    """The option --grace; its help names the server's default."""
    help_text = f"Time for the task to stop before it is forced.  [default: {default}]"
    return click.option("--grace", type=DURATION, metavar="DURATION", help=help_text)


@click.command()
@some_tasks_argument
@filter_option
@reason_option
@grace_option("30s")
@with_client
async def cancel(
    client: Client, tasks: tuple[str, ...], filter_: str, reason: str, grace: float | None
) -> int:
    """Cancel tasks.

    A waiting task ends at once; a running task gets a stop signal.

    \b
    Examples:
      taskyard cancel encode-17
      taskyard cancel --grace 0s encode-17
      taskyard cancel --filter 'metadata.labels.team = "video"'
    """
    if filter_ or not tasks:
        return await _by_filter(client, tasks, filter_, client.cancel_all(_live(filter_), reason=reason))
    return await for_each(client, tasks, partial(client.cancel, reason=reason, grace=grace), _print_task)


@click.command()
@tasks_argument
@reason_option
@grace_option("60s")
@with_client
async def pause(client: Client, tasks: tuple[str, ...], reason: str, grace: float | None) -> int:
    """Pause tasks until they are resumed.

    \b
    Example:
      taskyard pause encode-17
    """
    return await for_each(client, tasks, partial(client.pause, reason=reason, grace=grace), _print_task)


@click.command()
@tasks_argument
@with_client
async def resume(client: Client, tasks: tuple[str, ...]) -> int:
    """Resume paused tasks.

    \b
    Example:
      taskyard resume encode-17
    """
    return await for_each(client, tasks, client.resume, _print_task)


@click.command()
@some_tasks_argument
@filter_option
@click.option("--from-scratch", is_flag=True, help="Discard the checkpoints.")
@with_client
async def retry(client: Client, tasks: tuple[str, ...], filter_: str, from_scratch: bool) -> int:
    """Retry tasks that did not succeed.

    \b
    Examples:
      taskyard retry encode-17
      taskyard retry --filter 'status.phase = FAILED AND metadata.labels.team = "video"'
    """
    if filter_ or not tasks:
        return await _by_filter(client, tasks, filter_, client.retry_all(filter_, from_scratch=from_scratch))
    return await for_each(client, tasks, partial(client.retry, from_scratch=from_scratch), _print_task)


@click.command()
@tasks_argument
@click.option("--missing-ok", is_flag=True, help="Ignore tasks that do not exist.")
@with_client
async def delete(client: Client, tasks: tuple[str, ...], missing_ok: bool) -> int:
    """Delete ended tasks with their runs and logs.

    \b
    Example:
      taskyard delete encode-17
    """

    async def remove(task: str) -> str:
        await client.delete(task, missing_ok=missing_ok)
        return task

    return await for_each(client, tasks, remove, lambda task: click.echo(f"{task}  deleted"))


def _live(filter_: str) -> str:
    """The filter restricted to live tasks, so that a repeat matches nothing."""
    return f"({filter_}) AND status.phase = LIVE" if filter_ else ""


async def _by_filter(
    client: Client,
    tasks: tuple[str, ...],
    filter_: str,
    results: Stream[tuple[str, errors.TaskyardError | None]],
) -> int:
    if tasks or not filter_:
        raise click.UsageError("name tasks or give a --filter")
    count = failed = 0
    with Bar("Tasks") as bar:
        async for batch in results.batches:
            count += len(batch)
            bar.reached(count)
            bar.echo(last_segment(name) for name, error in batch if not error)
            refusals = [error for _, error in batch if error]
            failed += len(refusals)
            for error in refusals:
                click.echo(f"taskyard: {explain(error, client.context)}", err=True)
    click.echo(f"{screen.plural(count - failed, 'task')}{f', {failed} refused' if failed else ''}.", err=True)
    return FAILED if failed else 0


def _print_task(task: Task) -> None:
    phase = screen.paint(str(task.phase), str(task.phase))
    action = task.proto.status.requested_action.action
    requested = {1: ", stop requested", 2: ", pause requested"}.get(action, "")
    click.echo(f"{task.id}  {phase}{requested}")
