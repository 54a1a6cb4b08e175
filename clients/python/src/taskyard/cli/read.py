"""Commands that read: get, list, runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import click

from taskyard.cli import screen
from taskyard.cli.session import with_client
from taskyard.client import Client
from taskyard.task import Phase, Run, Task

PHASES = [str(phase) for phase in Phase if phase] + ["LIVE", "TERMINAL"]
LIMIT = 50


def output_option(*forms: str) -> Callable[[Any], Any]:
    """The option -o with these formats; the first one is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Output format.",
    )


exact_option = click.option("--exact", is_flag=True, help="Show times exactly, in UTC.")


@click.command()
@click.argument("task")
@output_option("text", "json", "yaml", "name")
@exact_option
@with_client
async def get(client: Client, task: str, output: str, exact: bool) -> None:
    """Show a task.

    \b
    Examples:
      taskyard get 0198c5b2-…
      taskyard get encode-17 -o json | jq .status
    """
    found = await client.get(task)
    if output in ("json", "yaml"):
        screen.print_message(found.proto, output)
    elif output == "name":
        click.echo(found.id)
    else:
        screen.print_fields(_fields(found, exact))


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
    reasons |= {"SLOT_BUSY": "its slot", "EXTERNAL": "its owner"}
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


@click.command("list")
@click.option("--filter", "-f", "filter_", default="", metavar="EXPRESSION", help="Only tasks that match.")
@click.option("--phase", type=click.Choice(PHASES, case_sensitive=False), help="Only tasks in this phase.")
@click.option(
    "--limit", "-n", type=click.IntRange(1), default=LIMIT, show_default=True, help="Maximum number of tasks."
)
@click.option("--all", "-a", "everything", is_flag=True, help="No limit.")
@output_option("table", "wide", "json", "yaml", "name")
@exact_option
@with_client
async def list_tasks(
    client: Client, filter_: str, phase: str | None, limit: int, everything: bool, output: str, exact: bool
) -> None:
    """List tasks, newest first.

    \b
    Examples:
      taskyard list --phase live
      taskyard list -f 'metadata.labels.team = "video"' -o json
      taskyard list --phase failed -o name | xargs taskyard retry
    """
    wide = output == "wide"
    table = screen.Table(*_titles(wide))
    printed = screen.for_programs(output)
    count = 0
    async for batch in client.list(filter_, phase=phase, limit=None if everything else limit).batches:
        count += len(batch)
        if printed:
            printed.add(task.proto for task in batch)
        elif output == "name":
            click.echo("".join(f"{task.id}\n" for task in batch), nl=False)
        else:
            table.add(_row(task, exact, wide) for task in batch)
    if printed:
        printed.close()
    elif output != "name":
        _print_count(count, limit, everything)


def _titles(wide: bool) -> tuple[str, ...]:
    # An id, a phase and two times leave a dozen columns of an 80-column terminal for the description.
    extra = ("ATTEMPT", "RUNNER", "TYPE", "LABELS") if wide else ()
    return ("TASK", "PHASE", "CREATED", "TOOK", *extra, "WHAT")


def _row(task: Task, exact: bool, wide: bool) -> tuple[str, ...]:
    extra = (str(task.attempt), task.runner, task.proto.spec.task_type, _labels(task)) if wide else ()
    return (
        task.id,
        str(task.phase),
        screen.format_time(task.create_time, exact),
        screen.span(screen.duration_of(task)),
        *extra,
        screen.shorten(screen.describe_execution(task), 200 if wide else 60),
    )


def _labels(task: Task) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(task.labels.items()))


def _print_count(count: int, limit: int, everything: bool) -> None:
    if not count:
        click.echo("No tasks.", err=True)
    elif count == limit and not everything:
        click.echo(f"Showing the newest {limit}; use --limit N or --all to see more.", err=True)


@click.command()
@click.argument("task")
@output_option("table", "json", "yaml")
@exact_option
@with_client
async def runs(client: Client, task: str, output: str, exact: bool) -> None:
    """List the runs of a task.

    \b
    Example:
      taskyard runs encode-17
    """
    table = screen.Table("RUN", "ATTEMPT", "STATE", "EXIT", "RUNNER", "STARTED", "TOOK", "ERROR")
    printed = screen.for_programs(output)
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
