"""The command `taskyard`: its commands, each loaded when it is called, and the options they share."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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
        "apply": Entry("apply", "apply", "Create or update tenants, types, schedules and tasks from a file."),
        "diff": Entry("apply", "diff", "Show what apply would change."),
        "limits": Entry("limits", "limits", "List named limits; create, change or delete one."),
        "schedule": Entry("schedules", "schedule", "List schedules; create, pause, run or preview one."),
        "group": Entry("groups", "group", "List groups of tasks; show, close, cancel or wait for one."),
        "graph": Entry("groups", "graph", "Draw the dependencies between the tasks of a group."),
        "report": Entry("report", "report", "Report the status of an external task, as its owner."),
        "get": Entry("read", "get", "Show tasks."),
        "list": Entry("read", "list_tasks", "List tasks, newest first."),
        "runs": Entry("read", "runs", "List the runs of a task."),
        "watch": Entry("follow", "watch", "Show changes as they happen."),
        "logs": Entry("logs", "logs", "Print the output of tasks."),
        "wait": Entry("follow", "wait", "Wait until tasks have ended, or reached a phase."),
        "explain": Entry("explain", "explain", "Explain why a task does not run."),
        "update": Entry("edit", "update", "Change labels, priority and other fields of tasks."),
        "edit": Entry("edit", "edit", "Change a task in your editor."),
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
        "presets": Entry("presets", "presets", "List presets; show one."),
        "webhooks": Entry("webhooks", "webhooks", "List webhook calls that wait; show the signing secret."),
        "doctor": Entry("doctor", "doctor", "Check the invariants of the data."),
        "quarantines": Entry("doctor", "quarantines", "List quarantined specs; release one."),
        "bench": Entry("bench", "bench", "Measure how fast this Taskyard is."),
    },
    "This command line": {
        "login": Entry("identity", "login", "Store a server and its key as a context."),
        "whoami": Entry("identity", "whoami", "Show whose key is in use, and where it comes from."),
        "config": Entry("config", "config", "List contexts; show, use or delete one."),
        "open": Entry("identity", "open_console", "Open the web console, signed in."),
        "version": Entry("identity", "show_version", "Show the versions of client and server."),
        "completion": Entry("completion", "completion", "Print the completion script of a shell."),
        "help": Entry("manual", "show_help", "Show the help of a command."),
    },
}
ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
ALIASES = {"ls": "list", "rm": "delete"}


class _Lazy(click.Group):
    """Loads a command when it is called: the overview and a mistyped name cost no imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = ENTRIES.get(ALIASES.get(cmd_name, cmd_name))
        if entry is None:
            return None
        module = importlib.import_module(f"taskyard.cli.{entry.module}")
        command: click.Command = getattr(module, entry.attribute)
        _accept_list(command)
        _accept_shared_options(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = {**ENTRIES, **ALIASES}
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=ENTRIES, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                # One width for all sections, so that the columns line up over the whole page.
                width = max(map(len, ENTRIES))
                formatter.write_dl([(name.ljust(width), entry.help) for name, entry in section.items()])


def _shared_options() -> list[click.Option]:
    """The options that may also follow the command; they take precedence over those before it."""

    def option(*names: str, target: str, **more: Any) -> click.Option:
        def change(context: click.Context, _: click.Parameter, value: Any) -> None:
            if value is not None and not context.resilient_parsing:
                context.obj = replace(context.find_object(object), **{target: value})  # type: ignore[type-var]

        # A name of its own: an argument of the command may have the same one.
        return click.Option(
            (*names, f"shared_{target}"), hidden=True, expose_value=False, callback=change, **more
        )

    from taskyard.cli.complete import context_names, tenant_ids

    return [
        option("--tenant", target="tenant", shell_complete=tenant_ids),
        option("--context", target="context", shell_complete=context_names),
        option("-v", "--debug", target="debug", is_flag=True, default=None),
    ]


def _accept_list(command: click.Command) -> None:
    """Makes `taskyard runners list` the same as `taskyard runners`, as other command lines have it."""
    if not isinstance(command, click.Group) or not command.invoke_without_command:
        return
    for name in ("list", "ls"):
        if name not in command.commands:
            named = click.Command(name, callback=command.callback, params=list(command.params))
            named.help, named.hidden = command.help, True
            command.add_command(named)


def _accept_shared_options(command: click.Command) -> None:
    """Adds the shared options to a command and to those below it, where they have no such option."""
    taken = {name for param in command.params for name in param.opts}
    command.params += [one for one in _shared_options() if not taken & set(one.opts)]
    for inner in getattr(command, "commands", {}).values():
        _accept_shared_options(inner)


def _lazily(name: str) -> Any:
    def complete(context: click.Context, param: click.Parameter, incomplete: str) -> Any:
        module = importlib.import_module("taskyard.cli.complete")
        return getattr(module, name)(context, param, incomplete)

    return complete


@click.group(cls=_Lazy, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--address", metavar="HOST:PORT", help="Server to use.  [env: TASKYARD_ADDRESS]")
@click.option("--key", help="Key to use; the environment variable is safer.  [env: TASKYARD_KEY]")
@click.option(
    "--tenant",
    shell_complete=_lazily("tenant_ids"),
    help="Tenant to work in; by default that of the key.  [env: TASKYARD_TENANT]",
)
@click.option(
    "--context",
    "context_name",
    metavar="NAME",
    shell_complete=_lazily("context_names"),
    help="Context of `taskyard config` to use.  [env: TASKYARD_CONTEXT]",
)
@click.option(
    "--patience",
    type=float,
    metavar="SECONDS",
    help="How long to wait for a server that does not answer.  [env: TASKYARD_PATIENCE; default: 30]",
)
@click.option("-v", "--debug", is_flag=True, help="Print every call with its time and request id.")
@click.version_option(None, "--version", package_name="taskyard", prog_name="taskyard")
@click.pass_context
def taskyard(
    context: click.Context,
    address: str | None,
    key: str | None,
    tenant: str | None,
    context_name: str | None,
    patience: float | None,
    debug: bool,
) -> None:
    """Run tasks durably on a fleet of hosts.

    The server is given by --address, else by TASKYARD_ADDRESS, else by .taskyard/context.toml in this folder
    or the nearest parent that has one, else by the current context of `taskyard config`. --tenant, --context
    and --debug may also follow the command. `ls` is short for list, `rm` for delete.

    \b
    Examples:
      taskyard up                          start everything on this machine
      taskyard run -- echo hello           run a command and show its output
      taskyard list --phase live           list waiting and running tasks
      taskyard logs -F TASK                follow the output of a task
      taskyard explain TASK                explain why a task does not run
      taskyard help list                   show the help of a command
    """
    from taskyard.cli.session import Connection

    if os.environ.get("FORCE_COLOR", "0") != "0" and not os.environ.get("NO_COLOR"):
        context.color = True
    context.obj = Connection(address, key, tenant, context_name or "", patience, debug)
