"""Commands that control tasks: cancel, pause, resume, retry, delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from taskyard.cli import screen
from taskyard.cli.complete import task_ids
from taskyard.cli.failure import FAILED, explain
from taskyard.cli.progress import Bar
from taskyard.cli.selection import agreed, combined, dry_run_option, selection_options, yes_option
from taskyard.cli.session import for_each, with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client, TaskResult
from taskyard.names import last_segment
from taskyard.stream import Stream
from taskyard.task import Task

tasks_argument = click.argument("tasks", nargs=-1, required=True, metavar="TASK...", shell_complete=task_ids)
some_tasks_argument = click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=task_ids)
_UNSUCCESSFUL = "status.phase = TERMINAL AND status.phase != SUCCEEDED"
Labels = tuple[tuple[str, str], ...]
reason_option = click.option("--reason", default="", help="Reason, for the audit log and the task.")


def grace_option(default: str) -> Callable[[Any], Any]:
    """The option --grace; its help names the server's default."""
    help_text = f"Time for the task to stop before it is forced.  [default: {default}]"
    return click.option("--grace", type=DURATION, metavar="DURATION", help=help_text)


@click.command()
@some_tasks_argument
@selection_options("All live tasks that match.")
@reason_option
@grace_option("30s")
@yes_option
@dry_run_option
@with_client
async def cancel(
    client: Client,
    tasks: tuple[str, ...],
    filter_: str,
    labels: Labels,
    reason: str,
    grace: float | None,
    yes: bool,
    dry_run: bool,
) -> int:
    """Cancel tasks.

    A waiting task ends at once; a running task gets a stop signal. With a filter or a label it shows how many
    tasks match and asks first.

    \b
    Examples:
      taskyard cancel encode-17
      taskyard cancel --grace 0s encode-17
      taskyard cancel -l team=video --dry-run
      taskyard cancel --filter 'spec.task_type = "encode"' --yes
    """
    if wanted := _selected(tasks, filter_, labels, dry_run):
        live = combined(wanted, (), "live")
        if not await agreed(client, live, "cancelled", yes=yes, dry_run=dry_run):
            return 0
        return await _each(client, client.cancel_all(live, reason=reason, grace=grace), "cancelled")
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
@selection_options("All unsuccessful tasks that match.")
@click.option("--from-scratch", is_flag=True, help="Discard the checkpoints.")
@click.option("--cascade", is_flag=True, help="Also revive the tasks that ended because of it.")
@yes_option
@dry_run_option
@with_client
async def retry(
    client: Client,
    tasks: tuple[str, ...],
    filter_: str,
    labels: Labels,
    from_scratch: bool,
    cascade: bool,
    yes: bool,
    dry_run: bool,
) -> int:
    """Retry tasks that did not succeed.

    With a filter or a label it shows how many tasks match and asks first.

    \b
    Examples:
      taskyard retry encode-17
      taskyard retry encode-17 --cascade
      taskyard retry --filter 'status.phase = FAILED' -l team=video --yes
    """
    if wanted := _selected(tasks, filter_, labels, dry_run):
        if cascade:
            raise click.UsageError("--cascade goes with the names of tasks, not with a filter or a label")
        failed = f"({wanted}) AND {_UNSUCCESSFUL}"
        if not await agreed(client, failed, "retried", yes=yes, dry_run=dry_run):
            return 0
        return await _each(client, client.retry_all(failed, from_scratch=from_scratch), "retried")
    retry_one = partial(client.retry, from_scratch=from_scratch, cascade=cascade)
    return await for_each(client, tasks, retry_one, _print_task)


@click.command()
@some_tasks_argument
@selection_options("All ended tasks that match.")
@click.option("--missing-ok", is_flag=True, help="Ignore tasks that do not exist.")
@yes_option
@dry_run_option
@with_client
async def delete(
    client: Client,
    tasks: tuple[str, ...],
    filter_: str,
    labels: Labels,
    missing_ok: bool,
    yes: bool,
    dry_run: bool,
) -> int:
    """Delete ended tasks with their runs and logs.

    With a filter or a label it shows how many tasks match and asks first.

    \b
    Examples:
      taskyard delete encode-17
      taskyard delete -l team=video --yes
    """
    if wanted := _selected(tasks, filter_, labels, dry_run):
        ended = combined(wanted, (), "terminal")
        if not await agreed(client, ended, "deleted", yes=yes, dry_run=dry_run):
            return 0
        return await _each(client, client.delete_all(wanted), "deleted")

    async def remove(task: str) -> str:
        await client.delete(task, missing_ok=missing_ok)
        return task

    return await for_each(client, tasks, remove, lambda task: click.echo(f"{task}  deleted"))


def _selected(tasks: tuple[str, ...], filter_: str, labels: Labels, dry_run: bool) -> str:
    """The filter of the options; empty if tasks are named. Raises UsageError for both or neither."""
    wanted = combined(filter_, labels)
    if bool(tasks) == bool(wanted):
        raise click.UsageError("name tasks, or give a --filter or a label with -l")
    if dry_run and tasks:
        raise click.UsageError("--dry-run goes with a --filter or a label")
    return wanted


async def _each(client: Client, results: Stream[TaskResult], verb: str) -> int:
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
    refused = f", {failed} refused" if failed else ""
    click.echo(f"{screen.plural(count - failed, 'task')} {verb}{refused}.", err=True)
    return FAILED if failed else 0


def _print_task(task: Task) -> None:
    phase = screen.paint(str(task.phase), str(task.phase))
    action = task.proto.status.requested_action.action
    requested = {1: ", stop requested", 2: ", pause requested", 3: ", reset requested"}.get(action, "")
    click.echo(f"{task.id}  {phase}{requested}")
