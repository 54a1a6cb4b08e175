"""Commands about schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import click

from taskyard.cli import printing, screen
from taskyard.cli.complete import schedule_ids
from taskyard.cli.launch_options import creation_options, new_task_of
from taskyard.cli.lists import confirm, print_list, word, yes_option
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.session import call, for_each, with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.convert import to_datetime
from taskyard.names import last_segment
from taskyard.v1 import schedule_pb2

TITLES = ("SCHEDULE", "STATE", "WHEN", "NEXT", "LAST", "FIRED", "SKIPPED", "MISSED")
_NOTES = {
    schedule_pb2.DAYLIGHT_SAVING_NOTE_AFTER_GAP: "right after the gap of a daylight-saving change",
    schedule_pb2.DAYLIGHT_SAVING_NOTE_FIRST_OF_TWO: "the first of two such times",
    schedule_pb2.DAYLIGHT_SAVING_NOTE_SECOND_OF_TWO: "the second of two such times",
}

one_schedule = click.argument("schedule_", metavar="SCHEDULE", shell_complete=schedule_ids)
some_schedules = click.argument(
    "schedules_", nargs=-1, required=True, metavar="SCHEDULE...", shell_complete=schedule_ids
)


class TimeType(click.ParamType[datetime]):
    """A time such as 2026-01-31T12:00:00Z; without an offset it is UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-01-31T12:00:00Z", param, ctx)
        return found if found.tzinfo else found.replace(tzinfo=UTC)


TIME = TimeType()


# Each task of a schedule has its own.
NOT_FOR_SCHEDULES = ("id", "request_id", "delay")


@click.group(invoke_without_command=True)
@click.option("--filter", "filter_", default="", metavar="EXPRESSION", help="Only schedules that match.")
@output_option("table", "json", "yaml", "name", "jsonpath")
@exact_option
@click.pass_context
def schedule(context: click.Context, filter_: str, output: str, exact: bool) -> int | None:
    """List schedules; create, pause, run or preview one.

    `taskyard apply` creates and changes them from files.

    \b
    Examples:
      taskyard schedule
      taskyard schedule create nightly --cron '30 2 * * *' -- ./report.sh
      taskyard schedule preview nightly
    """
    if context.invoked_subcommand is not None:
        return None

    async def print_all(client: Client) -> None:
        empty_message = "No schedules; `taskyard schedule create` and `taskyard apply` create them."
        await print_list(
            client.schedules.list(filter_), output, TITLES, lambda one: _row(one, exact), empty_message
        )

    return call(context.obj, print_all)


def _row(found: schedule_pb2.Schedule, exact: bool) -> tuple[str, ...]:
    return (
        last_segment(found.name),
        _state(found),
        screen.shorten(screen.clean(_when(found)), 40),
        _time(found, "next_fire_time", exact),
        _time(found, "last_scheduled_time", exact),
        str(found.fired_count),
        str(found.skipped_count),
        str(found.missed_count),
    )


def _state(found: schedule_pb2.Schedule) -> str:
    return "paused" if found.paused else "active" if found.HasField("next_fire_time") else "ended"


def _when(found: schedule_pb2.Schedule) -> str:
    parts = list(found.cron)
    if found.HasField("every"):
        parts.append(f"every {screen.span(found.every.ToTimedelta())}")
    zone = f" ({found.time_zone})" if found.time_zone else ""
    return ", ".join(parts) + zone


def _time(found: Any, name: str, exact: bool) -> str:
    return screen.format_time(to_datetime(getattr(found, name)), exact) if found.HasField(name) else ""


def _template_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a task except those whose names mean something else for a schedule."""
    function = creation_options(function)
    params: list[click.Parameter] = function.__dict__["__click_params__"]
    params[:] = [param for param in params if param.name not in ("jitter", "overlap")]
    for param in params:
        if isinstance(param, click.Option) and param.name in NOT_FOR_SCHEDULES:
            param.hidden = True
    return function


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--cron", multiple=True, metavar="LINE", help="Five fields, or @daily; repeatable.")
@click.option("--every", type=DURATION, metavar="DURATION", help="An interval of at least 1s.")
@click.option("--offset", type=DURATION, metavar="DURATION", help="Shifts the instants of --every.")
@click.option("--zone", "time_zone", metavar="ZONE", help="IANA time zone.  [default: UTC]")
@click.option("--start", "start_time", type=TIME, help="No instant before.")
@click.option("--end", "end_time", type=TIME, help="No instant at or after.")
@click.option("--jitter", type=DURATION, metavar="DURATION", help="Longest delay of an instant.")
@click.option(
    "--overlap",
    type=click.Choice(["skip", "queue", "queue_latest", "replace", "allow"]),
    help="While an earlier task is live.  [default: skip]",
)
@click.option(
    "--missed", type=click.Choice(["latest", "all", "none"]), help="Late instants.  [default: latest]"
)
@click.option("--catch-up", "catch_up_window", type=DURATION, metavar="DURATION", help="[default: 24h]")
@click.option("--runs", "remaining_runs", type=click.IntRange(1), help="End after as many tasks.")
@click.option("--pause-on-failure", is_flag=True, default=None, help="Pause when a task fails.")
@click.option("--paused", is_flag=True, default=None, help="Create it paused.")
@click.option("--description", help="For people.")
@_template_options
@with_client
async def create(client: Client, /, schedule_id: str, words: tuple[str, ...], **given: Any) -> None:
    """Create a schedule of a task.

    The options of the task are those of `taskyard submit`.

    \b
    Examples:
      taskyard schedule create nightly --cron '30 2 * * *' \\
          --zone Europe/Berlin -- ./report.sh
      taskyard schedule create tick --every 10m --overlap queue --type refresh
    """
    names = (
        "cron", "every", "offset", "time_zone", "start_time", "end_time", "jitter", "overlap", "missed",
        "catch_up_window", "remaining_runs", "pause_on_failure", "paused", "description",
    )  # fmt: skip
    options: Any = {name: value for name in names if (value := given.pop(name)) not in (None, ())}
    for name in NOT_FOR_SCHEDULES:
        if given.get(name):
            raise click.UsageError(f"--{name.replace('_', '-')} is not for schedules")
    made = await client.schedules.create(schedule_id, new_task_of(words, given), **options)
    click.echo(f"{schedule_id}  created; next {_time(made, 'next_fire_time', True) or 'never'}")


@schedule.command()
@one_schedule
@output_option("text", "json", "yaml")
@exact_option
@with_client
async def show(client: Client, schedule_: str, output: str, exact: bool) -> None:
    """Show a schedule.

    \b
    Example:
      taskyard schedule show nightly -o yaml
    """
    found = await client.schedules.get(schedule_)
    if output != "text":
        printing.print_message(found, output)
    else:
        screen.print_fields(_fields(found, exact))


def _fields(found: schedule_pb2.Schedule, exact: bool) -> Iterator[tuple[str, str]]:
    yield "schedule", last_segment(found.name)
    yield "description", screen.clean(found.description)
    yield "state", _state(found)
    yield "note", screen.clean(found.pause_note)
    yield "when", screen.clean(_when(found))
    yield "overlap", word(schedule_pb2.ScheduleOverlap, found.overlap or 1, "SCHEDULE_OVERLAP_")
    yield "missed", word(schedule_pb2.MissedPolicy, found.missed or 1, "MISSED_POLICY_")
    yield "runs", found.template.spec.execution.WhichOneof("kind") or found.template.spec.task_type
    if found.HasField("remaining_runs"):
        yield "remaining", str(found.remaining_runs)
    yield "next", _time(found, "next_fire_time", exact)
    yield "last", _time(found, "last_scheduled_time", exact)
    yield "last task", last_segment(found.last_task)
    yield "fired", str(found.fired_count)
    yield "skipped", str(found.skipped_count)
    yield "missed", str(found.missed_count)


@schedule.command()
@some_schedules
@click.option("--note", default="", help="Why; shown with the schedule.")
@with_client
async def pause(client: Client, schedules_: tuple[str, ...], note: str) -> int:
    """Let schedules create no tasks until they are resumed.

    \b
    Example:
      taskyard schedule pause nightly --note 'the warehouse is moved'
    """

    async def change(name: str) -> str:
        await client.schedules.pause(name, note)
        return name

    return await for_each(client, schedules_, change, lambda one: click.echo(f"{one}  paused"))


@schedule.command()
@some_schedules
@with_client
async def resume(client: Client, schedules_: tuple[str, ...]) -> int:
    """Let schedules go on at their next instants.

    \b
    Example:
      taskyard schedule resume nightly
    """

    async def change(name: str) -> str:
        found = await client.schedules.resume(name)
        return f"{name}  resumed; next {_time(found, 'next_fire_time', True) or 'never'}"

    return await for_each(client, schedules_, change, click.echo)


@schedule.command()
@one_schedule
@with_client
async def run(client: Client, schedule_: str) -> None:
    """Create the task of a schedule now and print its id.

    \b
    Example:
      taskyard logs -f $(taskyard schedule run nightly)
    """
    click.echo((await client.schedules.run(schedule_)).id)


@schedule.command()
@one_schedule
@click.option("--from", "start", type=TIME, required=True, help="First instant.")
@click.option("--to", "end", type=TIME, required=True, help="Before this; in the past.")
@click.option("--overlap", type=click.Choice(["queue", "allow"]), help="By default that of the schedule.")
@click.option("--dry-run", is_flag=True, help="Create nothing; print what would be created.")
@with_client
async def backfill(
    client: Client, schedule_: str, start: datetime, end: datetime, overlap: Any, dry_run: bool
) -> None:
    """Create the tasks of past instants and print their ids.

    \b
    Example:
      taskyard schedule backfill nightly --from 2026-01-01 --to 2026-01-08
    """
    made = await client.schedules.backfill(schedule_, start, end, overlap=overlap, validate_only=dry_run)
    for name in made.tasks:
        click.echo(last_segment(name))
    existing = f", {made.existing_count} exist already" if made.existing_count else ""
    click.echo(f"{len(made.tasks)} {'would be created' if dry_run else 'created'}{existing}", err=True)


@schedule.command()
@one_schedule
@click.option("--count", "-n", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many.")
@click.option("--from", "start", type=TIME, help="Instants after this.  [default: now]")
@output_option("text", "json", "yaml", "jsonpath")
@with_client
async def preview(client: Client, schedule_: str, count: int, start: datetime | None, output: str) -> None:
    """Show the next instants of a schedule.

    \b
    Examples:
      taskyard schedule preview nightly -n 5
      taskyard schedule preview nightly -o json | jq '.[].scheduledTime'
    """
    found = await client.schedules.preview(schedule_, count, start=start)
    if printed := printing.for_programs(output):
        printed.add(found)
        printed.close()
        return
    for instant in found:
        delay = instant.fire_time.ToDatetime() - instant.scheduled_time.ToDatetime()
        notes = [f"+{delay.total_seconds():g}s jitter"] if delay else []
        if instant.daylight_saving_note in _NOTES:
            notes.append(_NOTES[instant.daylight_saving_note])
        click.echo(f"{instant.local_time}{'  ' if notes else ''}{', '.join(notes)}")
    if not found:
        click.echo("No further instants.", err=True)


@schedule.command()
@some_schedules
@yes_option
@with_client
async def delete(client: Client, schedules_: tuple[str, ...], yes: bool) -> int:
    """Delete schedules; their tasks stay.

    \b
    Example:
      taskyard schedule delete nightly
    """
    confirm(f"Delete {', '.join(schedules_)}?", yes)

    async def remove(name: str) -> str:
        await client.schedules.delete(name)
        return name

    return await for_each(client, schedules_, remove, lambda one: click.echo(f"{one}  deleted"))
