"""Commands about the servers: up, status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from taskyard.cli import screen
from taskyard.cli.failure import UNREACHABLE, USAGE, CommandFailed
from taskyard.cli.session import with_client
from taskyard.client import Client


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Where everything is kept.  [default: the XDG data directory]",
)
@click.option("--host", help="Loopback address to listen on.  [default: 127.0.0.1]")
@click.option("--taskdb-port", type=click.IntRange(0, 65535), help="0 = any free one.  [default: 7420]")
@click.option("--scheduler-port", type=click.IntRange(0, 65535), help="0 = any free one.  [default: 7421]")
@click.option(
    "--database-url",
    envvar="TASKYARD_DATABASE_URL",
    help="A PostgreSQL of your own instead of the embedded one.  [env: TASKYARD_DATABASE_URL]",
)
@click.option("--postgres-user", help="Who runs the embedded PostgreSQL if you are root.")
@click.option(
    "--metrics", is_flag=True, default=None, help="Serve Prometheus metrics on 9420, 9421 and 9423."
)
@click.option(
    "--no-runner",
    "runner",
    flag_value=False,
    type=bool,
    default=None,
    help="Without a runner on this machine.",
)
def up(**given: Any) -> int:
    """Run everything on this machine.

    PostgreSQL, taskdb, scheduler and a runner, until Ctrl-C; the data is kept for the next time.

    \b
    Examples:
      taskyard up
      taskyard up --data-dir .taskyard --taskdb-port 0 --scheduler-port 0
    """
    try:
        from taskyard_standalone.up import UpSettings, run_up
    except ImportError:
        raise CommandFailed(
            "`taskyard up` needs the servers; run: pip install taskyard-standalone", USAGE
        ) from None
    return run_up(UpSettings(**{name: value for name, value in given.items() if value is not None}))


@click.command()
@with_client
async def status(client: Client) -> int:
    """Show whether the servers answer.

    Also tells whether the key is accepted.

    \b
    Example:
      taskyard status
    """
    serving = await client.health()
    addresses = {"taskdb": client.context.address, "scheduler": client.context.scheduler}
    table = screen.Table("SERVICE", "ADDRESS", "STATE")
    table.add((name, addresses[name], "serving" if up else "not reachable") for name, up in serving.items())
    if not all(serving.values()):
        return UNREACHABLE
    async for _ in client.list(limit=1):
        break
    click.echo(f"The key is accepted; tenant {client.context.tenant}, from {client.context.source}.")
    return 0
