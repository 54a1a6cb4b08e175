"""Commands about groups of tasks, and the drawing of a group's dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import click

from taskyard.cli import printing, screen
from taskyard.cli.complete import group_ids
from taskyard.cli.failure import FAILED, TIME_UP, CommandFailed
from taskyard.cli.graph_text import draw
from taskyard.cli.lists import print_list, word
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.session import call, for_each, with_client
from taskyard.cli.values import DURATION, PAIR
from taskyard.client import Client
from taskyard.convert import to_datetime
from taskyard.names import last_segment
from taskyard.v1 import group_pb2

TITLES = ("GROUP", "STATE", "LIVE", "SUCCEEDED", "NOT SUCCEEDED", "CREATED")

one_group = click.argument("group_", metavar="GROUP", shell_complete=group_ids)
some_groups = click.argument("groups_", nargs=-1, required=True, metavar="GROUP...", shell_complete=group_ids)


@click.group(invoke_without_command=True)
@click.option("--filter", "filter_", default="", metavar="EXPRESSION", help="Only groups that match.")
@output_option("table", "json", "yaml", "name", "jsonpath")
@exact_option
@click.pass_context
def group(context: click.Context, filter_: str, output: str, exact: bool) -> int | None:
    """List groups of tasks; show, close, cancel or wait for one.

    `taskyard submit --group` makes a group with its first task.

    \b
    Examples:
      taskyard group --filter 'state = OPEN'
      taskyard submit --group nightly -- ./part.sh 1
      taskyard group close nightly && taskyard group wait nightly
    """
    if context.invoked_subcommand is not None:
        return None

    async def print_all(client: Client) -> None:
        found = client.groups.list(filter_)
        empty_message = "No groups; `taskyard submit --group` creates one."
        await print_list(found, output, TITLES, lambda one: _row(one, exact), empty_message)

    return call(context.obj, print_all)


def _row(found: group_pb2.Group, exact: bool) -> tuple[str, ...]:
    return (
        last_segment(found.name),
        _state(found),
        str(found.live_count),
        str(found.succeeded_count),
        str(found.not_succeeded_count),
        _time(found, "create_time", exact),
    )


def _state(found: group_pb2.Group) -> str:
    return word(group_pb2.GroupState, found.state, "GROUP_STATE_")


def _time(found: Any, name: str, exact: bool) -> str:
    return screen.format_time(to_datetime(getattr(found, name)), exact) if found.HasField(name) else ""


@group.command()
@click.argument("group_id", metavar="GROUP")
@click.option("--callback", default="", metavar="URL", help="Called with the group when it is complete.")
@click.option("--callback-header", "headers", type=PAIR, multiple=True, help="Repeatable.")
@with_client
async def create(client: Client, group_id: str, callback: str, headers: tuple[tuple[str, str], ...]) -> None:
    """Create an empty group, to give it a webhook before its first task.

    \b
    Example:
      taskyard group create nightly --callback https://example.com/done
    """
    await client.groups.create(group_id, callback=callback, callback_headers=dict(headers))
    click.echo(f"{group_id}  created")


@group.command()
@one_group
@output_option("text", "json", "yaml")
@exact_option
@with_client
async def get(client: Client, group_: str, output: str, exact: bool) -> None:
    """Show a group.

    \b
    Example:
      taskyard group get nightly -o yaml
    """
    found = await client.groups.get(group_)
    if output != "text":
        printing.print_message(found, output)
    else:
        screen.print_fields(_fields(found, exact))


def _fields(found: group_pb2.Group, exact: bool) -> Iterator[tuple[str, str]]:
    yield "group", last_segment(found.name)
    yield "state", _state(found)
    yield "live", str(found.live_count)
    yield "succeeded", str(found.succeeded_count)
    yield "not succeeded", str(found.not_succeeded_count)
    yield "parent", last_segment(found.parent_task)
    yield "callback", screen.clean(found.callback.url)
    yield "created", _time(found, "create_time", exact)
    yield "closed", _time(found, "close_time", exact)
    yield "cancelled", _time(found, "cancel_time", exact)
    yield "complete", _time(found, "complete_time", exact)


@group.command()
@some_groups
@with_client
async def close(client: Client, groups_: tuple[str, ...]) -> int:
    """Let no more tasks join groups; each is complete once its tasks have ended.

    \b
    Example:
      taskyard group close nightly
    """

    async def change(name: str) -> str:
        found = await client.groups.close(name)
        return f"{name}  {_state(found)}, {found.live_count} live"

    return await for_each(client, groups_, change, click.echo)


@group.command()
@some_groups
@click.option("--reason", default="", help="Why; part of the tasks' changes.")
@with_client
async def cancel(client: Client, groups_: tuple[str, ...], reason: str) -> int:
    """Close groups and cancel their live tasks.

    \b
    Example:
      taskyard group cancel nightly --reason 'the data was wrong'
    """

    async def change(name: str) -> str:
        found = await client.groups.cancel(name, reason)
        return f"{name}  {_state(found)}, cancelling {screen.plural(found.live_count, 'task')}"

    return await for_each(client, groups_, change, click.echo)


@group.command()
@one_group
@click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest wait.")
@with_client
async def wait(client: Client, group_: str, timeout: float | None) -> int:
    """Wait until a group is complete.

    The exit code is 0 if all of its tasks succeeded, 1 otherwise, 124 after the timeout. A group that nobody
    closes is never complete.

    \b
    Example:
      taskyard group wait nightly --timeout 5m
    """
    try:
        found = await client.groups.wait(group_, timeout=timeout)
    except TimeoutError:
        left = await client.groups.get(group_)
        remedy = "; `taskyard group close` closes it" if left.state == group_pb2.GROUP_STATE_OPEN else ""
        waited = screen.span(timedelta(seconds=timeout or 0))
        problem = f"{group_} is {_state(left)} with {left.live_count} live tasks after {waited}{remedy}"
        raise CommandFailed(problem, TIME_UP) from None
    click.echo(f"{group_}  complete, {found.succeeded_count} succeeded, {found.not_succeeded_count} did not")
    return FAILED if found.not_succeeded_count else 0


@group.command()
@some_groups
@with_client
async def delete(client: Client, groups_: tuple[str, ...]) -> int:
    """Delete groups without live tasks; their tasks stay.

    \b
    Example:
      taskyard group delete nightly
    """

    async def change(name: str) -> str:
        await client.groups.delete(name)
        return name

    return await for_each(client, groups_, change, lambda one: click.echo(f"{one}  deleted"))


@click.command()
@one_group
@with_client
async def graph(client: Client, group_: str) -> None:
    """Draw the dependencies between the tasks of a group.

    Each task is shown below the last of the tasks that it waits for; the others are named beside it.

    \b
    Example:
      taskyard graph nightly
    """
    found = await client.groups.get(group_)
    filter_ = f'metadata.group = "{last_segment(found.name)}"'
    tasks = [task async for task in client.list(filter_, view="full", order_by="metadata.create_time")]
    for line in draw([(task.id, task.phase.name, task.proto.spec.after) for task in tasks]):
        click.echo(line)
    if not tasks:
        click.echo(f"{group_} has no tasks.", err=True)
