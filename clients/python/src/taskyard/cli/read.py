"""Commands that read: get, list, runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import click

from taskyard.cli import printing, screen
from taskyard.cli.complete import task_ids
from taskyard.cli.pager import paged
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.selection import combined, selection_options
from taskyard.cli.session import Connection, call, for_each, with_client
from taskyard.client import Client
from taskyard.names import last_segment
from taskyard.task import Event, EventType, Phase, Run, Task

PHASES = [str(phase) for phase in Phase if phase] + ["LIVE", "TERMINAL"]
LIMIT = 50


@click.command()
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...", shell_complete=task_ids)
@output_option("text", "json", "yaml", "name", "jsonpath")
@exact_option
@with_client
async def get(client: Client, tasks: tuple[str, ...], output: str, exact: bool) -> int:
    """Show tasks.

    JSON of one task is an object, of several an array. A JSONPath is filled in from the JSON of each task.

    \b
    Examples:
      taskyard get 0198c5b2-…
      taskyard get encode-17 encode-18 -o json | jq .[].status
      taskyard get encode-17 -o jsonpath='{.status.phase} {.metadata.labels.team}'
    """
    found: list[Task] = []
    code = await for_each(client, tasks, client.get, found.append)
    if len(tasks) == 1 and found and output == "json":
        printing.print_message(found[0].proto, output)
    elif printer := printing.for_programs(output):
        if not found and len(tasks) == 1:
            return code
        printer.add(task.proto for task in found)
        printer.close()
    elif output == "name":
        click.echo("".join(f"{task.id}\n" for task in found), nl=False)
    else:
        with paged():
            for place, task in enumerate(found):
                if place:
                    click.echo()
                screen.print_fields(_fields(task, exact))
    return code


def _fields(task: Task, exact: bool) -> Iterator[tuple[str, str]]:
    status, spec = task.proto.status, task.proto.spec
    yield "task", task.id
    yield "runs", screen.shorten(screen.describe_execution(task), 200)
    yield "type", spec.task_type
    yield "phase", str(task.phase)
    yield "waiting for", _pending_reason(task)
    yield "requested", _requested(task)
    yield "exit code", "" if task.exit_code is None else str(task.exit_code)
    if task.error:
        yield "error", screen.clean(f"{task.error.code}: {task.error.message}".strip(": "))
    yield "runner", task.runner
    yield "attempt", str(task.attempt) if task.attempt else ""
    if status.progress.percent or status.progress.message:
        yield "progress", screen.clean(f"{status.progress.percent}% {status.progress.message}")
    yield "priority", str(spec.priority)
    yield "after", screen.shorten(", ".join(last_segment(one.task) for one in spec.after), 200)
    yield "slot", spec.slot
    yield "labels", _labels(task)
    yield "created", screen.format_time(task.create_time, exact)
    yield "started", screen.format_time(task.start_time, exact)
    yield "ended", screen.format_time(task.end_time, exact)
    yield "took", screen.span(screen.duration_of(task))
    yield "payload", _document(task.payload)
    yield "output", _document(task.output)
    yield "version", str(task.version)


def _pending_reason(task: Task) -> str:
    from taskyard.v1.task_pb2 import PendingReason

    if task.phase is not Phase.PENDING:
        return ""
    reasons = {"QUEUED": "its turn", "DELAYED": "its time", "BACKOFF": "the next attempt"}
    reasons |= {
        "SLOT_BUSY": "its slot",
        "EXTERNAL": "its owner",
        "BLOCKED": "other tasks",
        "LIMITED": "a limit",
    }
    name = PendingReason.Name(task.proto.status.pending_reason).removeprefix("PENDING_REASON_")
    return reasons.get(name, "")


def _requested(task: Task) -> str:
    from taskyard.v1.task_pb2 import TaskAction

    action = task.proto.status.requested_action
    named = TaskAction.Name(action.action).removeprefix("TASK_ACTION_").lower() if action.action else ""
    return screen.clean(f"{named}: {action.reason}" if action.reason else named)


def _document(value: Any) -> str:
    if value is None:
        return ""
    text = f"{len(value)} bytes" if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False)
    return screen.shorten(screen.clean(text), 1000)


def _sorted(order: str, tasks: list[Task]) -> list[Task]:
    """The tasks in an order that the server does not have."""
    field = order.removeprefix("-")
    tasks.sort(key=lambda task: (_KEYS[field](task), task.id), reverse=order.startswith("-"))
    return tasks


def _seconds(task: Task) -> float:
    took = screen.duration_of(task)
    return took.total_seconds() if took else -1.0


# Orders of the server, and those that are made of what it has returned.
_ORDERS = {"created": "metadata.create_time", "ended": "status.end_time"}
_KEYS: dict[str, Callable[[Task], Any]] = {
    "id": lambda task: "",
    "phase": lambda task: int(task.phase),
    "priority": lambda task: task.proto.spec.priority,
    "started": lambda task: task.start_time.timestamp() if task.start_time else 0.0,
    "took": _seconds,
    "type": lambda task: task.proto.spec.task_type,
    "runner": lambda task: task.runner,
}
SORTS = [sign + name for name in (*_ORDERS, *_KEYS) for sign in ("", "-")]


@click.command("list")
@selection_options()
@click.option(
    "--phase",
    type=click.Choice(PHASES, case_sensitive=False),
    metavar="PHASE",
    help=f"Only tasks in this phase: {', '.join(PHASES).lower()}.",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    metavar="[-]FIELD",
    default="-created",
    show_default=True,
    help="created, ended (ended tasks only), or of the listed ones id, phase, priority, started, took, type,"
    " runner; with - in front descending.",
)
@click.option(
    "--limit", "-n", type=click.IntRange(1), default=LIMIT, show_default=True, help="Maximum number of tasks."
)
@click.option("--all", "-a", "everything", is_flag=True, help="No limit.")
@click.option(
    "--all-tenants", "-A", is_flag=True, help="Tasks of every tenant, with a key that may see them."
)
@click.option("--watch", "-w", "watching", is_flag=True, help="Then show changes until Ctrl-C.")
@output_option("table", "wide", "json", "yaml", "csv", "name", "jsonpath")
@exact_option
@click.pass_obj
def list_tasks(connection: Connection, /, all_tenants: bool, **options: Any) -> int:
    """List tasks, newest first.

    \b
    Examples:
      taskyard list --phase live
      taskyard list -l team=video --sort -priority
      taskyard list --filter 'spec.task_type = "encode"' -o csv > tasks.csv
      taskyard list -o jsonpath='{.metadata.id} {.status.phase}'
      taskyard list --phase failed -o name | xargs taskyard retry
    """
    if all_tenants:
        connection = replace(connection, tenant="-")
    return call(connection, lambda client: _list(client, all_tenants=all_tenants, **options))


async def _list(
    client: Client,
    *,
    filter_: str,
    labels: tuple[tuple[str, str], ...],
    phase: str | None,
    sort: str,
    limit: int,
    everything: bool,
    all_tenants: bool,
    watching: bool,
    output: str,
    exact: bool,
) -> None:
    wanted = combined(filter_, labels, phase)
    printer = _Printer(output, exact or output == "csv", all_tenants, watching)
    field = sort.removeprefix("-")
    order = f"{_ORDERS[field]}{' desc' if sort.startswith('-') else ''}" if field in _ORDERS else ""
    stream = client.list(wanted, order_by=order, limit=None if everything else limit)
    with paged():
        if field in _ORDERS:
            async for batch in stream.batches:
                printer.add(batch)
        else:
            printer.add(_sorted(sort, [task async for task in stream]))
        if not watching:
            printer.close()
    if not watching:
        _print_count(printer, limit, everything)
        return
    async for event in client.watch(filter=wanted, resume_token=stream.resume_token):
        # The log may go back to before the list.
        if event.version > printer.versions.get(event.task.name, 0):
            printer.add_event(event)


class _Printer:
    """Prints tasks in one of the formats."""

    def __init__(self, output: str, exact: bool, all_tenants: bool, watching: bool = False) -> None:
        self._watching = watching
        self._names = output == "name"
        self._wide = output in ("wide", "csv")
        self._exact, self._all_tenants = exact, all_tenants
        self._programs = printing.for_programs(output)
        extra = ("ATTEMPT", "RUNNER", "TYPE", "LABELS") if self._wide else ()
        # An id, a phase and two times leave a dozen columns of an 80-column terminal for the description.
        titles = (*(("TENANT",) if all_tenants else ()), "TASK", "PHASE", "CREATED", "TOOK", *extra, "WHAT")
        self._table = (printing.CsvTable if output == "csv" else screen.Table)(*titles)
        self.count = 0
        self.versions: dict[str, int] = {}

    @property
    def for_people(self) -> bool:
        """Whether remarks are of use."""
        return self._programs is None and not self._names

    def add(self, tasks: Any) -> None:
        """Prints the next tasks."""
        found = list(tasks)
        self.count += len(found)
        if self._watching:
            self.versions |= {task.name: task.version for task in found}
        if self._programs:
            self._programs.add(task.proto for task in found)
        elif self._names:
            names = (task.name if self._all_tenants else task.id for task in found)
            click.echo("".join(f"{name}\n" for name in names), nl=False)
        else:
            self._table.add(self._row(task) for task in found)

    def add_event(self, event: Event) -> None:
        """Prints a changed task as it is now; a deleted one has no more than its name."""
        if event.type not in (EventType.DELETED, EventType.EXITED):
            self.add([event.task])

    def close(self) -> None:
        """Prints the end."""
        if self._programs:
            self._programs.close()

    def _row(self, task: Task) -> tuple[str, ...]:
        spec = task.proto.spec
        extra = (str(task.attempt), task.runner, spec.task_type, _labels(task)) if self._wide else ()
        return (
            *((task.name.split("/")[1],) if self._all_tenants else ()),
            task.id,
            str(task.phase),
            screen.format_time(task.create_time, self._exact),
            screen.span(screen.duration_of(task)),
            *extra,
            screen.shorten(screen.describe_execution(task), 200 if self._wide else 60),
        )


def _labels(task: Task) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(task.labels.items()))


def _print_count(printer: _Printer, limit: int, everything: bool) -> None:
    if not printer.for_people:
        return
    if not printer.count:
        click.echo("No tasks.", err=True)
    elif printer.count == limit and not everything:
        click.echo(f"Showing the first {limit}; use --limit N or --all to see more.", err=True)


@click.command()
@click.argument("task", shell_complete=task_ids)
@output_option("table", "json", "yaml", "jsonpath")
@exact_option
@with_client
async def runs(client: Client, task: str, output: str, exact: bool) -> None:
    """List the runs of a task.

    \b
    Example:
      taskyard runs encode-17
    """
    table = screen.Table("RUN", "ATTEMPT", "STATE", "EXIT", "RUNNER", "STARTED", "TOOK", "ERROR")
    printed = printing.for_programs(output)
    with paged():
        async for batch in client.runs(task).batches:
            if printed:
                printed.add(run.proto for run in batch)
            else:
                table.add(_run_row(run, exact) for run in batch)
    if printed:
        printed.close()
    elif not table.count:
        click.echo("No runs yet.", err=True)


def _run_row(run: Run, exact: bool) -> tuple[str, ...]:
    took = run.end_time - run.start_time if run.start_time and run.end_time else None
    return (
        str(run.generation),
        str(run.attempt),
        str(run.state),
        "" if run.exit_code is None else str(run.exit_code),
        run.runner,
        screen.format_time(run.start_time, exact),
        screen.span(took),
        screen.clean(f"{run.error.code}: {run.error.message}".strip(": ")) if run.error else "",
    )
