"""Commands about named limits."""

from __future__ import annotations

import re
from typing import Any

import click

from taskyard.cli import printing, screen
from taskyard.cli.complete import limit_ids
from taskyard.cli.lists import confirm, print_list, yes_option
from taskyard.cli.printing import output_option
from taskyard.cli.session import call, for_each, with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.named_limits import Rate, new_limit
from taskyard.names import last_segment
from taskyard.v1 import limit_pb2

TITLES = ("LIMIT", "RUNNING", "MAX", "PER KEY", "STARTS", "STARTS PER KEY", "WAITING")

one_limit = click.argument("limit", metavar="LIMIT", shell_complete=limit_ids)
some_limits = click.argument("limits_", nargs=-1, required=True, metavar="LIMIT...", shell_complete=limit_ids)


class RateType(click.ParamType[Rate]):
    """A number of starts and a duration, such as 100/1m."""

    name = "count/duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Rate:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d+)/(.+)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a rate such as 100/1m", param, ctx)
        return int(match[1]), DURATION.convert(match[2], param, ctx)


RATE = RateType()
_BOUNDS = (
    click.option("--max-running", type=click.IntRange(1), help="Units at a time, all keys together."),
    click.option("--max-running-per-key", type=click.IntRange(1), help="Units of a key at a time."),
    click.option("--starts", type=RATE, help="Starts within a duration, such as 100/1m."),
    click.option("--starts-per-key", type=RATE, help="Starts of a key within a duration."),
    click.option("--description", help="For people."),
)


def _bound_options(function: Any) -> Any:
    for option in reversed(_BOUNDS):
        function = option(function)
    return function


@click.group(invoke_without_command=True)
@output_option("table", "json", "yaml", "name", "jsonpath")
@click.pass_context
def limits(context: click.Context, output: str) -> int | None:
    """List named limits; create, change or delete one.

    Tasks name limits with `taskyard submit --limit`; `taskyard apply` creates them from files.

    \b
    Examples:
      taskyard limits
      taskyard limits create api --max-running-per-key 2 --starts 100/1m
      taskyard submit --limit api:customer-7 -- ./call.sh
    """
    if context.invoked_subcommand is not None:
        return None

    async def print_all(client: Client) -> None:
        empty_message = "No limits; `taskyard limits create` and `taskyard apply` create them."
        await print_list(client.limits.list(), output, TITLES, _row, empty_message)

    return call(context.obj, print_all)


def _row(found: limit_pb2.Limit) -> tuple[str, ...]:
    return (
        last_segment(found.name),
        str(found.running_units),
        str(found.max_running or "-"),
        str(found.max_running_per_key or "-"),
        _rate(found, "starts"),
        _rate(found, "starts_per_key"),
        str(found.waiting_count),
    )


def _rate(found: limit_pb2.Limit, name: str) -> str:
    if not found.HasField(name):  # type: ignore[arg-type]
        return "-"
    rate: limit_pb2.StartRate = getattr(found, name)
    return f"{rate.count}/{screen.span(rate.per.ToTimedelta())}"


@limits.command()
@click.argument("limit_id", metavar="LIMIT")
@_bound_options
@with_client
async def create(client: Client, /, limit_id: str, **given: Any) -> None:
    """Create a limit of at least one bound.

    \b
    Example:
      taskyard limits create api --max-running 20 --max-running-per-key 2
    """
    await client.limits.create(limit_id, **_given(given))
    click.echo(f"{limit_id}  created")


@limits.command()
@one_limit
@_bound_options
@with_client
async def update(client: Client, /, limit: str, **given: Any) -> None:
    """Change bounds of a limit; a higher one admits what waits.

    \b
    Example:
      taskyard limits update api --max-running 40
    """
    options = _given(given)
    if not options:
        raise click.UsageError("nothing to change; name a bound such as --max-running 40")
    changed = new_limit(**options)
    changed.name = (await client.limits.get(limit)).name
    await client.limits.put(changed, *options)
    click.echo(f"{limit}  changed")


@limits.command()
@one_limit
@output_option("yaml", "json", "jsonpath")
@with_client
async def show(client: Client, limit: str, output: str) -> None:
    """Show a limit.

    \b
    Example:
      taskyard limits show api
    """
    printing.print_message(await client.limits.get(limit), output)


@limits.command()
@some_limits
@yes_option
@with_client
async def delete(client: Client, limits_: tuple[str, ...], yes: bool) -> int:
    """Delete limits; what waits for them is admitted.

    \b
    Example:
      taskyard limits delete api
    """
    confirm(f"Delete {', '.join(limits_)}?", yes)

    async def remove(name: str) -> str:
        await client.limits.delete(name)
        return name

    return await for_each(client, limits_, remove, lambda one: click.echo(f"{one}  deleted"))


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
