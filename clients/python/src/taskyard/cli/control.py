"""Commands that steer tasks: cancel, pause, resume, retry, delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from taskyard.cli import screen
from taskyard.cli.session import for_each, with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.task import Task

tasks_argument = click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
reason_option = click.option("--reason", default="", help="For the audit trail and the task.")


def grace_option(default: str) -> Callable[[Any], Any]:
    """--grace, of which the server's default is told."""
    told = f"Time for the task to stop before it is forced.  [default: {default}]"
    return click.option("--grace", type=DURATION, metavar="DURATION", help=told)


@click.command()
@tasks_argument
@reason_option
@grace_option("30s")
@with_client
async def cancel(client: Client, tasks: tuple[str, ...], reason: str, grace: float | None) -> int:
    """Cancel tasks.

    One that waits ends at once, one that runs is asked to stop.

    \b
    Examples:
      taskyard cancel encode-17
      taskyard cancel --grace 0s encode-17
      taskyard list --phase pending -o name | xargs taskyard cancel
    """
    return await for_each(client, tasks, partial(client.cancel, reason=reason, grace=grace), _tell)


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
    return await for_each(client, tasks, partial(client.pause, reason=reason, grace=grace), _tell)


@click.command()
@tasks_argument
@with_client
async def resume(client: Client, tasks: tuple[str, ...]) -> int:
    """Let paused tasks go on.

    \b
    Example:
      taskyard resume encode-17
    """
    return await for_each(client, tasks, client.resume, _tell)


@click.command()
@tasks_argument
@click.option("--from-scratch", is_flag=True, help="Forget the checkpoints.")
@with_client
async def retry(client: Client, tasks: tuple[str, ...], from_scratch: bool) -> int:
    """Start tasks that did not succeed once more.

    \b
    Examples:
      taskyard retry encode-17
      taskyard list --phase failed -o name | xargs taskyard retry
    """
    return await for_each(client, tasks, partial(client.retry, from_scratch=from_scratch), _tell)


@click.command()
@tasks_argument
@click.option("--missing-ok", is_flag=True, help="A task that does not exist is no error.")
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


def _tell(task: Task) -> None:
    phase = screen.paint(str(task.phase), str(task.phase))
    action = task.proto.status.requested_action.action
    asked = {1: ", asked to stop", 2: ", asked to pause"}.get(action, "")
    click.echo(f"{task.id}  {phase}{asked}")
