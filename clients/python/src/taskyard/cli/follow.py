"""Commands that follow tasks: watch, wait."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import click

from taskyard import errors
from taskyard.cli import printing, screen
from taskyard.cli.complete import task_ids
from taskyard.cli.failure import FAILED, TIME_UP, CommandFailed
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.progress import Bar
from taskyard.cli.selection import combined, selection_options
from taskyard.cli.session import with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.many import chunks
from taskyard.task import Event, EventType, Phase, Task
from taskyard.v1 import task_pb2

GAP = (
    "changes may be missing here: the database was replaced by a standby or a backup that lacks some; "
    "tasks that differ are shown as they are now"
)


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=task_ids)
@selection_options()
@click.option("--snapshot", is_flag=True, help="Begin with the existing tasks.")
@output_option("text", "json")
@exact_option
@with_client
async def watch(
    client: Client,
    tasks: tuple[str, ...],
    filter_: str,
    labels: tuple[tuple[str, str], ...],
    snapshot: bool,
    output: str,
    exact: bool,
) -> None:
    """Show changes as they happen.

    Follows the named tasks until they have ended, or all tasks until Ctrl-C.

    \b
    Examples:
      taskyard watch
      taskyard watch encode-17
      taskyard watch --filter 'spec.task_type = "encode"' -o json
    """
    for task in tasks:
        await client.get(task, view="name")
    stream = client.watch(
        *tasks, filter=combined(filter_, labels), snapshot=snapshot or bool(tasks), until_terminal=bool(tasks)
    )
    async for event in stream:
        if event.type is EventType.GAP:
            click.echo(GAP, err=True)
            continue
        click.echo(printing.json_line(event.proto) if output == "json" else _event_line(event, exact))


def _event_line(event: Event, exact: bool) -> str:
    time = event.time or datetime.now(UTC)
    shown = screen.format_time(time, True) if exact else f"{time.astimezone():%H:%M:%S}"
    status = event.proto.status
    phase = "deleted" if event.type is EventType.DELETED else str(event.phase)
    more = ""
    if event.phase is Phase.RUNNING and status.progress.percent:
        more = screen.clean(f"{status.progress.percent}% {status.progress.message}")
    if event.phase not in (Phase.SUCCEEDED, Phase.RUNNING) and (status.error.code or status.error.message):
        more = screen.clean(f"{status.error.code}: {_error_message(event)}".strip(": "))
    line = f"{screen.dim(shown)}  {event.task.id}  {screen.paint(phase, phase)}"
    return f"{line}{' ' * (14 - len(phase))}  {more}" if more else line


def _error_message(event: Event) -> str:
    """The message of the error: the log of changes has only its code, the task has the message as well."""
    status, newest = event.proto.status, event.proto.task.status
    same = newest.error.code == status.error.code and newest.attempt == status.attempt
    return status.error.message or (newest.error.message if same else "")


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=task_ids)
@selection_options("Live tasks that match.")
@click.option(
    "--for",
    "condition",
    metavar="phase=PHASE",
    default="",
    help="Wait until each task is in this phase, not until it has ended.",
)
@click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest wait.")
@with_client
async def wait(
    client: Client,
    tasks: tuple[str, ...],
    filter_: str,
    labels: tuple[tuple[str, str], ...],
    condition: str,
    timeout: float | None,
) -> int:
    """Wait until tasks have ended, or reached a phase.

    Waits for the named tasks and for the live tasks that match the filter. The exit code is 0 if all have
    succeeded, or reached the phase, 1 otherwise, 124 after the timeout.

    \b
    Examples:
      taskyard wait encode-17 encode-18
      taskyard wait --timeout 5m encode-17 && echo done
      taskyard wait --for phase=running encode-17
      taskyard wait -l team=video
    """
    wanted = combined(filter_, labels)
    named = list(dict.fromkeys(tasks))
    if wanted:
        named += [task.name async for task in client.list(wanted, phase="live", view="name")]
    if not named and not wanted:
        raise click.UsageError("name tasks, or give a --filter or a label with -l")
    waiting = _Wait(client, named, _phase_of(condition) if condition else None)
    try:
        # Tasks that are there already are reported whatever the timeout is.
        await waiting.look()
        async with asyncio.timeout(timeout):
            await waiting.follow()
    except TimeoutError:
        left = f"{named[0]} is" if len(named) == 1 else f"{waiting.left} of {len(named)} tasks are"
        still = f"not {condition}" if condition else "still live"
        hint = "; `taskyard explain` shows why a task does not run" if not condition else ""
        raise CommandFailed(
            f"{left} {still} after {screen.span(timedelta(seconds=timeout or 0))}{hint}", TIME_UP
        ) from None
    return 0 if waiting.well == len(named) else FAILED


def _phase_of(condition: str) -> Phase:
    name, _, value = condition.partition("=")
    phases = {str(phase): phase for phase in Phase if phase}
    if name != "phase" or value.upper() not in phases:
        raise click.UsageError(f"--for {condition!r} is not phase= and one of {', '.join(phases).lower()}")
    return phases[value.upper()]


class _Wait:
    """Waits for the end of tasks, or for a phase; prints each task when it is there."""

    def __init__(self, client: Client, named: list[str], phase: Phase | None) -> None:
        self._client, self._phase = client, phase
        self._named = named
        self._open: set[str] = set()
        self.well = 0

    @property
    def left(self) -> int:
        """How many tasks are not there yet."""
        return len(self._open)

    async def look(self) -> None:
        """Reads every task once."""
        found = [task async for task in self._client.get_many(self._named)]
        self._open = {task.name for task in found}
        self._print([task for task in found if self._there(task.phase)])

    async def follow(self) -> None:
        """Returns when every task is there."""
        with Bar("Waiting for tasks", len(self._named)) as bar:
            bar.reached(len(self._named) - self.left)
            for names in chunks(sorted(self._open)):
                stream = self._client.watch(*names, snapshot=True, until_terminal=True)
                async for batch in stream.batches:
                    self._print([event.task for event in batch if self._changed(event)], bar)
                    if not self._open.intersection(names):
                        break
                await stream.aclose()

    def _changed(self, event: Event) -> bool:
        if event.type is EventType.DELETED:
            raise errors.NotFound("task", event.task.name)
        # The task itself may be newer than the change.
        if event.task.name in self._open and self._there(event.phase):
            event.proto.task.status.phase = task_pb2.TaskPhase.ValueType(int(event.phase))
            return True
        return False

    def _there(self, phase: Phase) -> bool:
        return phase.terminal or phase is self._phase

    def _print(self, tasks: list[Task], bar: Bar | None = None) -> None:
        new = [task for task in tasks if task.name in self._open]
        self._open.difference_update(task.name for task in new)
        self.well += sum(task.phase is (self._phase or Phase.SUCCEEDED) for task in new)
        lines = [outcome_line(task) for task in new]
        if bar is None:
            click.echo("".join(f"{line}\n" for line in lines), nl=False)
        else:
            bar.echo(lines)
            bar.reached(len(self._named) - self.left)


def outcome_line(task: Task) -> str:
    """How a task ended, on one line."""
    parts = [task.id, screen.paint(str(task.phase), str(task.phase))]
    if task.phase is not Phase.SUCCEEDED and task.error:
        parts.append(screen.clean(f"{task.error.code}: {task.error.message}".strip(": ")))
    return "  ".join(parts)
