"""The command `taskyard`: its commands, each loaded when it is called, and the options they share."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from taskyard.cli.failure import EXIT_CODES

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Entry:
    """The location of a command and its line in the overview."""

    module: str
    attribute: str
    help: str


# In the order of the overview, which is built from this alone, so that it loads no command.
SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "This machine": {
        "up": Entry("serve", "up", "Run everything on this machine."),
        "down": Entry("serve", "down", "Stop a `taskyard up` and keep its data."),
        "status": Entry("status", "status", "Show whether work can proceed."),
        "support-bundle": Entry("support_bundle", "support_bundle", "Collect what support needs."),
    },
    "Tasks": {
        "run": Entry("launch", "run", "Run a task and show its output."),
        "submit": Entry("launch", "submit", "Create a task, or many, and print the ids."),
        "apply": Entry("apply", "apply", "Create or update tenants, task types and tasks from a file."),
        "get": Entry("read", "get", "Show a task."),
        "list": Entry("read", "list_tasks", "List tasks, newest first."),
        "runs": Entry("read", "runs", "List the runs of a task."),
        "watch": Entry("follow", "watch", "Show changes as they happen."),
        "logs": Entry("follow", "logs", "Print the output of a task."),
        "wait": Entry("follow", "wait", "Wait until tasks have ended."),
        "explain": Entry("explain", "explain", "Explain why a task does not run."),
        "cancel": Entry("control", "cancel", "Cancel tasks."),
        "pause": Entry("control", "pause", "Pause tasks until they are resumed."),
        "resume": Entry("control", "resume", "Resume paused tasks."),
        "retry": Entry("control", "retry", "Retry tasks that did not succeed."),
        "delete": Entry("control", "delete", "Delete ended tasks with their runs and logs."),
        "stats": Entry("insight", "stats", "Show counts, durations and waits."),
        "audit": Entry("insight", "audit", "Show the audit log."),
        "top": Entry("top", "top", "Watch queue, runners and throughput live."),
    },
    "Administration": {
        "runners": Entry("runners", "runners", "List runners; show, label or delete one."),
        "drain": Entry("runners", "drain", "Stop new work on runners and let their tasks finish."),
        "undrain": Entry("runners", "undrain", "Let drained runners accept work again."),
        "tenants": Entry("tenants", "tenants", "List tenants; create, change or delete one."),
        "keys": Entry("keys", "keys", "List keys; create or revoke one."),
        "types": Entry("types", "types", "List task types; show, check or delete one."),
        "doctor": Entry("doctor", "doctor", "Check the invariants of the data."),
        "quarantines": Entry("doctor", "quarantines", "List quarantined specs; release one."),
        "bench": Entry("bench", "bench", "Measure how fast this Taskyard is."),
    },
    "Shell": {
        "completion": Entry("completion", "completion", "Print the completion script of a shell."),
    },
}
ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class _Lazy(click.Group):
    """Loads a command when it is called: the overview and a mistyped name cost no imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"taskyard.cli.{entry.module}")
        command: click.Command = getattr(module, entry.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in ENTRIES and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=ENTRIES, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                # One width for all sections, so that the columns line up over the whole page.
                width = max(map(len, ENTRIES))
                formatter.write_dl([(name.ljust(width), entry.help) for name, entry in section.items()])


@click.group(cls=_Lazy, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--address", metavar="HOST:PORT", help="Server to use.  [env: TASKYARD_ADDRESS]")
@click.option("--key", help="Key to use; the environment variable is safer.  [env: TASKYARD_KEY]")
@click.option("--tenant", help="Tenant to work in.  [env: TASKYARD_TENANT]")
@click.version_option(package_name="taskyard", prog_name="taskyard")
@click.pass_context
def taskyard(context: click.Context, address: str | None, key: str | None, tenant: str | None) -> None:
    """Run tasks durably on a fleet of hosts.

    The server is given by --address, else by TASKYARD_ADDRESS, else by .taskyard/context.toml in this folder
    or the nearest parent that has one, else by ~/.config/taskyard/config.toml.

    \b
    Examples:
      taskyard up                          start everything on this machine
      taskyard run -- echo hello           run a command and show its output
      taskyard list --phase live           list waiting and running tasks
      taskyard logs -f TASK                follow the output of a task
      taskyard explain TASK                explain why a task does not run
    """
    from taskyard.cli.session import Connection

    context.obj = Connection(address, key, tenant)
