"""Commands that summarize many tasks: stats, audit."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import click
from google.protobuf.json_format import MessageToDict

from taskyard.cli import printing, screen
from taskyard.cli.complete import task_ids
from taskyard.cli.lists import word
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.read import LIMIT
from taskyard.cli.session import with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.convert import to_datetime
from taskyard.names import task_name
from taskyard.task import Phase
from taskyard.v1 import audit_pb2, common_pb2
from taskyard.v1 import task_service_pb2 as pb

Dimension = Literal["tenant", "task_type", "runner"]
DIMENSIONS: tuple[Dimension, ...] = ("tenant", "task_type", "runner")
# Phases that always have a column, so that two outputs can be compared.
_LIVE = (Phase.PENDING, Phase.RUNNING)
_ENDED = (Phase.SUCCEEDED, Phase.FAILED)


@click.command()
@click.option("--filter", "filter_", default="", metavar="EXPRESSION", help="Only tasks that match.")
@click.option("--since", "window", type=DURATION, metavar="DURATION", help="Only this recent period.")
@click.option(
    "--by", "group_by", type=click.Choice(DIMENSIONS), multiple=True, help="Group by this; repeatable."
)
@output_option("table", "json", "yaml")
@with_client
async def stats(
    client: Client, filter_: str, window: float | None, group_by: tuple[Dimension, ...], output: str
) -> None:
    """Show counts, durations and waits.

    \b
    Examples:
      taskyard stats
      taskyard stats --since 1h --by task_type
      taskyard stats --filter 'metadata.labels.team = "video"' -o json
    """
    response = await client.stats(filter_, window=window, group_by=group_by)
    if output != "table":
        printing.print_message(response, output)
        return
    phases = _phases(response)
    titles = [*(name.upper().replace("_", " ") for name in group_by), "TASKS", *map(str, phases)]
    table = screen.Table(*titles, "RETRIES", "WAITED p50/p95", "TOOK p50/p95", "OLDEST")
    table.add(_row(group, group_by, phases) for group in response.groups)
    if not table.count:
        click.echo("No tasks.", err=True)


def _phases(response: pb.GetTaskStatsResponse) -> list[Phase]:
    found = {Phase(count.phase) for group in response.groups for count in group.phases if count.count}
    return sorted(found | set(_LIVE) | set(_ENDED))


def _row(group: pb.TaskStats, group_by: tuple[Dimension, ...], phases: list[Phase]) -> tuple[str, ...]:
    counts = {Phase(count.phase): count.count for count in group.phases}
    oldest = group.oldest_pending_age.ToTimedelta() if group.HasField("oldest_pending_age") else None
    return (
        *(group.group.get(name, "") for name in group_by),
        str(group.total),
        *(str(counts.get(phase, 0)) for phase in phases),
        str(group.retry_count),
        _quantiles(group.queue_duration),
        _quantiles(group.run_duration),
        screen.span(oldest) if oldest and oldest > timedelta() else "",
    )


def _quantiles(durations: pb.DurationStats) -> str:
    if not durations.HasField("p50"):
        return ""
    return f"{screen.span(durations.p50.ToTimedelta())}/{screen.span(durations.p95.ToTimedelta())}"


@click.command()
@click.argument("task", required=False, shell_complete=task_ids)
@click.option("--filter", "filter_", default="", metavar="EXPRESSION", help="Only events that match.")
@click.option("--type", "event_type", default="", metavar="TYPE", help="Only of this type, or type.*.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1),
    default=LIMIT,
    show_default=True,
    help="Maximum number of events.",
)
@click.option("--all", "-a", "everything", is_flag=True, help="No limit.")
@output_option("table", "json", "yaml")
@exact_option
@with_client
async def audit(
    client: Client,
    task: str | None,
    filter_: str,
    event_type: str,
    limit: int,
    everything: bool,
    output: str,
    exact: bool,
) -> None:
    """Show the audit log, newest first.

    \b
    Examples:
      taskyard audit
      taskyard audit encode-17
      taskyard audit --type 'task.cancel*' -o json
    """
    wanted = [f"({filter_})"] if filter_ else []
    if task:
        wanted.append(f'resource = "{task_name(await client.tenant(), task)}"')
    if event_type:
        wanted.append(f'event_type = "{event_type}"')
    table = screen.Table("TIME", "EVENT", "BY", "WHAT", "DETAILS")
    printed = printing.for_programs(output)
    count = 0
    stream = client.audit(" AND ".join(wanted), page_size=0 if everything else min(limit, 1000))
    async for batch in stream.batches:
        shown = batch if everything else batch[: limit - count]
        count += len(shown)
        if printed:
            printed.add(shown)
        else:
            table.add(_event(event, exact) for event in shown)
        if not everything and count >= limit:
            break
    if printed:
        printed.close()
    elif not count:
        click.echo("No events.", err=True)


def _event(event: audit_pb2.AuditEvent, exact: bool) -> tuple[str, ...]:
    time = to_datetime(event.time)
    details = MessageToDict(event.details)
    text = " ".join(f"{name}={_number(value)}" for name, value in details.items())
    return (
        screen.format_time(time, True) if exact else _clock(time),
        event.event_type,
        _actor(event.actor),
        event.resource.partition("/")[2]
        if event.resource.startswith("runners/")
        else event.resource.rpartition("/")[2],
        screen.shorten(screen.clean(text), 120),
    )


def _clock(time: datetime | None) -> str:
    """The local time to the second, with the date if it was another day."""
    if time is None:
        return ""
    local = time.astimezone()
    today = datetime.now().astimezone().date()
    return f"{local:%H:%M:%S}" if local.date() == today else f"{local:%Y-%m-%d %H:%M:%S}"


def _actor(actor: common_pb2.Actor) -> str:
    kind = word(common_pb2.ActorType, actor.type, "ACTOR_TYPE_") if actor.type else ""
    return screen.clean(f"{kind} {actor.id}".strip())


def _number(value: object) -> str:
    """Struct stores every number as a float; whole numbers are printed without a point."""
    return f"{value:g}" if isinstance(value, float) else str(value)
