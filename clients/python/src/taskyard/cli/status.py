"""The command status: whether the servers serve, and whether work can proceed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import click

from taskyard import errors
from taskyard.admin import Admin
from taskyard.channels import Channels
from taskyard.cli import screen
from taskyard.cli.failure import FAILED, UNREACHABLE
from taskyard.cli.lists import word
from taskyard.cli.printing import output_option, print_message
from taskyard.cli.session import Connection, call
from taskyard.client import Client
from taskyard.failover import split_addresses
from taskyard.names import last_segment
from taskyard.v1 import admin_service_pb2 as pb

STATUS_SECONDS = 10.0
# A taskdb waits for 5 s before it reports that it has no connection to its database.
REASON_SECONDS = 8.0
_UNITS = ("B", "kB", "MB", "GB", "TB")


@click.command()
@output_option("table", "json", "yaml")
@click.pass_obj
def status(connection: Connection, output: str) -> int:
    """Show whether work can proceed.

    Shows the servers and, with an administrator's key, the database and its disk, the leader of the
    housekeeping, standbys, runners, and how long the oldest task has waited. The exit code is 0 if work can
    proceed, 1 if it cannot, 3 if no server serves.

    \b
    Examples:
      taskyard status
      taskyard status -o json | jq .runners
    """
    return call(connection, lambda client: _status(client, output), announces=False)


async def _status(client: Client, output: str) -> int:
    serving = await _print_servers(client, output == "table")
    if not serving:
        return await _explain_outage(client, output)
    try:
        found = await client.admin.system_status(timeout=STATUS_SECONDS)
    except (errors.PermissionDenied, errors.Unimplemented):
        async for _ in client.list(limit=1):
            break
        found = None
    if output != "table":
        print_message(found or pb.GetSystemStatusResponse(), output)
    else:
        if found is not None:
            screen.print_fields(_fields(found))
        click.echo(f"The key is accepted; tenant {await client.tenant()}, from {client.context.source}.")
    for weakness in await _weaknesses(client):
        click.echo(f"warning: {screen.clean(weakness)}", err=True)
    _print_problems(found)
    return FAILED if found is not None and not found.operational else 0


async def _explain_outage(client: Client, output: str) -> int:
    """Print what a taskdb that runs but does not serve reports as the reason."""
    found, problem = await _reason(client)
    if found is not None and output != "table":
        print_message(found, output)
    elif found is not None:
        screen.print_fields(_fields(found))
    _print_problems(found)
    if found is None:
        click.echo(f"taskyard: work cannot proceed; {screen.clean(problem)}", err=True)
    return UNREACHABLE


async def _reason(client: Client) -> tuple[pb.GetSystemStatusResponse | None, str]:
    """What taskdb knows of the system, or in one sentence why it does not know that."""
    unknown = "the log of a service that does not serve has the reason"
    states = [await client.server_state(one) for one in split_addresses(client.context.address)]
    if all(state == "not reachable" for state in states):
        return None, unknown
    channels = Channels(client.context, retries=False)
    try:
        return await Admin(channels).system_status(timeout=REASON_SECONDS), ""
    except errors.StorageUnavailable as error:
        # The rest is advice for programs.
        return None, f"{error.message.partition(';')[0]}; is PostgreSQL running?"
    except errors.TaskyardError:
        return None, unknown
    finally:
        await channels.close()


def _print_problems(found: pb.GetSystemStatusResponse | None) -> None:
    for problem in found.problems if found is not None else ():
        click.echo(f"taskyard: {screen.clean(problem)}", err=True)


async def _weaknesses(client: Client) -> list[str]:
    """The findings of the check `durability`; none if the key is not an administrator's."""
    try:
        report = await client.admin.doctor(["durability"])
    except errors.PermissionDenied:
        return []
    return [example for finding in report.findings for example in finding.examples]


async def _print_servers(client: Client, shown: bool) -> bool:
    """Print each server with its state; returns whether one of each kind serves."""
    table = screen.Table("SERVICE", "ADDRESS", "STATE")
    serving: dict[str, bool] = {}
    rows = []
    for name, addresses in (("taskdb", client.context.address), ("scheduler", client.context.scheduler)):
        for address in split_addresses(addresses) if addresses else ():
            state = await client.server_state(address)
            serving[name] = serving.get(name, False) or state == "serving"
            rows.append((name, address, state))
    if shown:
        table.add(rows)
    return all(serving.values())


def _fields(found: pb.GetSystemStatusResponse) -> Iterator[tuple[str, str]]:
    yield "database", _database(found.database)
    yield "leader", f"term {found.leader.term}" if found.leader.held else "none; an election is due"
    if found.standbys:
        yield "standbys", ", ".join(map(_standby, found.standbys))
    yield "runners", _runners(found.runners)
    yield "waiting", _waiting(found.queue)


def _database(database: pb.DatabaseStatus) -> str:
    state = word(pb.DatabaseState, database.state, "DATABASE_STATE_").replace("_", " ")
    parts = [f"{state}, PostgreSQL {database.version.partition(' ')[0]}, {size(database.size_bytes)}"]
    if database.HasField("disk_free_bytes"):
        parts.append(f"{size(database.disk_free_bytes)} free on its disk")
    parts.append(f"{database.used_connection_count} of {database.max_connection_count} connections in use")
    return ", ".join(parts)


def _standby(standby: pb.StandbyStatus) -> str:
    kind = "synchronous" if standby.synchronous else "asynchronous"
    return f"{screen.clean(standby.name) or 'unnamed'} ({kind}, {size(standby.lag_bytes)} behind)"


def _runners(runners: pb.RunnerSummary) -> str:
    counts = (
        (runners.healthy_count, "healthy"),
        (runners.draining_count, "draining"),
        (runners.dead_count, "dead"),
        (runners.stopped_count, "stopped"),
    )
    text = ", ".join(f"{count} {name}" for count, name in counts if count or name == "healthy")
    if runners.dead_examples:
        text += f" ({', '.join(map(last_segment, runners.dead_examples))} dead)"
    return f"{text}; {runners.running_count} of {runners.capacity} places in use"


def _waiting(queue: pb.QueueSummary) -> str:
    if not queue.waiting_count:
        return "no task"
    wait = timedelta(seconds=queue.oldest_wait.seconds)
    return f"{screen.plural(queue.waiting_count, 'task')}, the oldest for {screen.span(wait)}"


def size(count: int) -> str:
    """Bytes for people, with three digits at most."""
    value = float(count)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError("the last unit takes any size")
