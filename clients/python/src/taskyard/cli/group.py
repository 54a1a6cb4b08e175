"""The command `taskyard` and the options that all of its commands share."""

from __future__ import annotations

from importlib.metadata import version

import click

from taskyard.cli import completion, control, follow, launch, read, serve
from taskyard.cli.failure import EXIT_CODES
from taskyard.cli.session import Connection


class _InOrder(click.Group):
    """Lists the commands as they were added, which is the order in which they are met."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_InOrder, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--address", metavar="HOST:PORT", help="Server to use.  [env: TASKYARD_ADDRESS]")
@click.option("--key", help="Key to use; the environment is a safer place.  [env: TASKYARD_KEY]")
@click.option("--tenant", help="Tenant to work in.  [env: TASKYARD_TENANT]")
@click.version_option(version("taskyard"), prog_name="taskyard")
@click.pass_context
def taskyard(context: click.Context, address: str | None, key: str | None, tenant: str | None) -> None:
    """Run tasks durably on a fleet of hosts.

    The server is the one given by --address, else by TASKYARD_ADDRESS, else by .taskyard/context.toml in this
    folder or one above, else by ~/.config/taskyard/config.toml.

    \b
    Examples:
      taskyard up                          start everything on this machine
      taskyard run -- echo hello           run a command, see its output
      taskyard list --phase live           what waits or runs
      taskyard logs -f TASK                follow the output of a task
    """
    context.obj = Connection(address, key, tenant)


for command in (
    serve.up,
    serve.down,
    serve.status,
    launch.run,
    launch.submit,
    read.get,
    read.list_tasks,
    read.runs,
    follow.watch,
    follow.logs,
    follow.wait,
    control.cancel,
    control.pause,
    control.resume,
    control.retry,
    control.delete,
    completion.completion,
):
    taskyard.add_command(command)
