"""Commands about the servers of this machine: up, down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from taskyard.cli.background import find_data_dir, start_detached, stop
from taskyard.cli.failure import MISSING, USAGE, CommandFailed
from taskyard.cli.values import DURATION


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Data directory.  [default: the XDG data directory]",
)
@click.option("--host", help="Loopback address to listen on.  [default: 127.0.0.1]")
@click.option("--taskdb-port", type=click.IntRange(0, 65535), help="0 = any free one.  [default: 7420]")
@click.option("--scheduler-port", type=click.IntRange(0, 65535), help="0 = any free one.  [default: 7421]")
@click.option("--gateway-port", type=click.IntRange(0, 65535), help="0 = any free one.  [default: 7480]")
@click.option(
    "--global-tasks",
    is_flag=True,
    default=None,
    help="Serve the Global tasks DB to everything on this machine, without a key, as tenant default.",
)
@click.option("--global-tasks-port", type=click.IntRange(0, 65535), help="0 = any free one.  [default: 5000]")
@click.option(
    "--database-url",
    envvar="TASKYARD_DATABASE_URL",
    help="A PostgreSQL of your own instead of the embedded one.  [env: TASKYARD_DATABASE_URL]",
)
@click.option("--postgres-user", help="User that runs the embedded PostgreSQL if you are root.")
@click.option("--metrics", is_flag=True, default=None, help="Serve Prometheus metrics on 9420 to 9424.")
@click.option(
    "--no-runner",
    "runner",
    flag_value=False,
    type=bool,
    default=None,
    help="Without a runner on this machine.",
)
@click.option("--detach", "-d", is_flag=True, help="Return once it is ready; `taskyard down` stops it.")
def up(detach: bool, **given: Any) -> int:
    """Run everything on this machine.

    PostgreSQL, taskdb, scheduler, gateway and a runner, until Ctrl-C; the data is kept for the next time.

    \b
    Examples:
      taskyard up
      taskyard up --data-dir .taskyard --detach
    """
    standalone = _standalone()
    if detach:
        return start_detached([word for word in _own_arguments() if word not in ("--detach", "-d")])
    settings = {name: value for name, value in given.items() if value is not None}
    return int(standalone.run_up(standalone.UpSettings(**settings)))


def _standalone() -> Any:
    try:
        from taskyard_standalone import up
    except ImportError:
        message = "`taskyard up` needs the servers; run: pip install taskyard-standalone"
        raise CommandFailed(message, USAGE) from None
    return up


def _own_arguments() -> list[str]:
    """The arguments after `up` on the command line."""
    return sys.argv[sys.argv.index("up") + 1 :]


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), help="Data directory of the instance.")
@click.option(
    "--timeout", type=DURATION, default=60.0, metavar="DURATION", help="Longest wait.  [default: 60s]"
)
def down(data_dir: Path | None, timeout: float) -> int:
    """Stop a `taskyard up` and keep its data.

    Without --data-dir it stops the instance of the nearest .taskyard folder upwards, else that of the XDG
    data directory.

    \b
    Example:
      taskyard down
    """
    from taskyard.local_instance import owner_of
    from taskyard_standalone.settings import default_data_dir

    found = find_data_dir(data_dir, default_data_dir())
    try:
        pid = owner_of(found)
    except OSError as error:
        raise CommandFailed(f"{found / 'lock'} cannot be read: {error.strerror}") from None
    if pid is None:
        raise CommandFailed(f"no `taskyard up` is running in {found}; name another with --data-dir", MISSING)
    stop(pid, timeout)
    click.echo(f"Stopped. The data is kept in {found}.")
    return 0
