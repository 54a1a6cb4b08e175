"""Commands about task types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from taskyard.cli import printing, screen
from taskyard.cli.complete import type_ids
from taskyard.cli.failure import FAILED
from taskyard.cli.lists import confirm, print_list, yes_option
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.session import call, for_each, with_client
from taskyard.cli.values import JSON
from taskyard.client import Client
from taskyard.convert import to_datetime
from taskyard.names import last_segment
from taskyard.v1 import task_type_pb2

TITLES = ("TYPE", "STATE", "RUNS", "REVISION", "CHANGED", "DESCRIPTION")


@click.group(invoke_without_command=True)
@click.option("--filter", "filter_", default="", metavar="EXPRESSION", help="Only types that match.")
@click.option(
    "--of", "tenant", default="", metavar="TENANT", help="Of this tenant; system has the shared ones."
)
@output_option("table", "json", "yaml", "name", "jsonpath")
@exact_option
@click.pass_context
def types(context: click.Context, filter_: str, tenant: str, output: str, exact: bool) -> int | None:
    """List task types; show, check or delete one.

    `taskyard apply` creates and updates them.

    \b
    Examples:
      taskyard types
      taskyard types show encode
      taskyard types check encode '{"width": 640}'
    """
    if context.invoked_subcommand is not None:
        return None

    async def print_all(client: Client) -> None:
        found = client.admin.types(filter_, tenant=tenant)
        empty_message = "No task types; `taskyard apply` creates them."
        await print_list(found, output, TITLES, lambda one: _row(one, exact), empty_message)

    return call(context.obj, print_all)


def _row(task_type: task_type_pb2.TaskType, exact: bool) -> tuple[str, ...]:
    return (
        last_segment(task_type.name),
        _state(task_type),
        task_type.execution.WhichOneof("kind") or "",
        str(task_type.revision),
        screen.format_time(to_datetime(task_type.update_time), exact),
        screen.shorten(screen.clean(task_type.description), 80),
    )


def _state(task_type: task_type_pb2.TaskType) -> str:
    return "disabled" if task_type.disabled else "paused" if task_type.queue_paused else "open"


@types.command()
@click.argument("task_type", metavar="TYPE", shell_complete=type_ids)
@output_option("text", "json", "yaml")
@exact_option
@with_client
async def show(client: Client, task_type: str, output: str, exact: bool) -> None:
    """Show a task type with its defaults.

    \b
    Example:
      taskyard types show encode -o yaml
    """
    found = await client.admin.get_type(task_type)
    if output != "text":
        printing.print_message(found, output)
    else:
        screen.print_fields(_fields(found, exact))


def _fields(task_type: task_type_pb2.TaskType, exact: bool) -> Iterator[tuple[str, str]]:
    yield "type", last_segment(task_type.name)
    yield "description", screen.clean(task_type.description)
    yield "state", _state(task_type)
    yield "runs", task_type.execution.WhichOneof("kind") or "defined by each task"
    yield "priority", str(task_type.priority) if task_type.HasField("priority") else ""
    if task_type.retry.HasField("max_retries"):
        yield "retries", str(task_type.retry.max_retries)
    for name in ("attempt_timeout", "total_timeout", "queue_timeout", "retention"):
        if task_type.HasField(name):
            yield name.replace("_", " "), screen.span(getattr(task_type, name).ToTimedelta())
    yield "schema", screen.shorten(screen.clean(task_type.payload_schema.decode(errors="replace")), 500)
    yield "revision", str(task_type.revision)
    yield "created", screen.format_time(to_datetime(task_type.create_time), exact)
    yield "changed", screen.format_time(to_datetime(task_type.update_time), exact)


@types.command()
@click.argument("task_type", metavar="TYPE", shell_complete=type_ids)
@click.argument("payload", type=JSON, metavar="JSON|@FILE")
@with_client
async def check(client: Client, task_type: str, payload: Any) -> int:
    """Check a payload against a type's schema.

    The exit code is 0 if it matches, 1 otherwise.

    \b
    Example:
      taskyard types check encode '{"width": 640}'
    """
    response = await client.admin.validate_payload(task_type, payload)
    for violation in response.violations:
        click.echo(f"{violation.field}: {screen.clean(violation.description)}")
    if response.valid:
        click.echo("The payload matches.")
    return 0 if response.valid else FAILED


@types.command()
@click.argument("types_", nargs=-1, required=True, metavar="TYPE...", shell_complete=type_ids)
@yes_option
@with_client
async def delete(client: Client, types_: tuple[str, ...], yes: bool) -> int:
    """Delete task types that no live task uses.

    \b
    Example:
      taskyard types delete encode
    """
    confirm(f"Delete {', '.join(types_)}?", yes)

    async def remove(task_type: str) -> str:
        await client.admin.delete_type(task_type)
        return task_type

    return await for_each(client, types_, remove, lambda one: click.echo(f"{one}  deleted"))
