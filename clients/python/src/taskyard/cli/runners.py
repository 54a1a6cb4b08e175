"""Commands about runners: runners, drain, undrain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Literal

import click

from taskyard.cli import printing, screen
from taskyard.cli.complete import runner_ids
from taskyard.cli.failure import TIME_UP, CommandFailed
from taskyard.cli.lists import confirm, pairs, print_list, word, yes_option
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.progress import Bar
from taskyard.cli.session import Connection, call, for_each, with_client
from taskyard.cli.values import DURATION, PAIR
from taskyard.client import Client
from taskyard.convert import to_datetime
from taskyard.names import last_segment
from taskyard.v1 import runner_pb2

TITLES = ("RUNNER", "STATE", "TASKS", "KINDS", "LAST SEEN", "VERSION", "LABELS")
# Poll interval of a drain.
POLL_SECONDS = 0.5


@click.group(invoke_without_command=True)
@click.option("--filter", "filter_", default="", metavar="EXPRESSION", help="Only runners that match.")
@output_option("table", "json", "yaml", "name", "jsonpath")
@exact_option
@click.pass_context
def runners(context: click.Context, filter_: str, output: str, exact: bool) -> int | None:
    """List runners; show, label or delete one.

    \b
    Examples:
      taskyard runners
      taskyard runners --filter 'state = HEALTHY AND labels.zone = "a"'
      taskyard runners show worker-1
      taskyard runners label worker-1 zone=b gpu=
    """
    if context.invoked_subcommand is not None:
        return None

    async def print_all(client: Client) -> None:
        empty_message = "No runners; start `taskyard-runner` on a host."
        await print_list(
            client.admin.runners(filter_), output, TITLES, lambda one: row_of(one, exact), empty_message
        )

    return call(context.obj, print_all)


def row_of(runner: runner_pb2.Runner, exact: bool) -> tuple[str, ...]:
    """A runner as a row below TITLES."""
    registration = runner.registration
    return (
        last_segment(runner.name),
        _state(runner),
        f"{runner.used_capacity}/{registration.capacity}",
        ",".join(_kinds(runner)),
        screen.format_time(to_datetime(runner.heartbeat_time), exact),
        registration.version,
        pairs(runner.labels),
    )


def _state(runner: runner_pb2.Runner) -> str:
    # A draining runner without tasks is drained.
    if runner.state == runner_pb2.RUNNER_STATE_DRAINING and not runner.used_capacity:
        return "drained"
    return word(runner_pb2.RunnerState, runner.state, "RUNNER_STATE_")


def _kinds(runner: runner_pb2.Runner) -> list[str]:
    kinds = runner.registration.execution_kinds
    return [word(runner_pb2.ExecutionKind, kind, "EXECUTION_KIND_") for kind in kinds]


@runners.command()
@click.argument("runner", shell_complete=runner_ids)
@output_option("text", "json", "yaml")
@exact_option
@with_client
async def show(client: Client, runner: str, output: str, exact: bool) -> None:
    """Show a runner and the tasks it holds.

    \b
    Example:
      taskyard runners show worker-1
    """
    found = await client.admin.get_runner(runner)
    if output != "text":
        printing.print_message(found, output)
    else:
        screen.print_fields(_fields(found, exact))


# Metadata of the registration that describes what tasks can use.
_CAPABILITIES = {"container_engine": "containers", "sandbox": "sandbox", "limits": "limits"}


def _fields(runner: runner_pb2.Runner, exact: bool) -> Iterator[tuple[str, str]]:
    registration, resources = runner.registration, runner.registration.resources
    yield "runner", last_segment(runner.name)
    yield "state", _state(runner)
    yield "occupancy", word(runner_pb2.RunnerOccupancy, runner.occupancy, "RUNNER_OCCUPANCY_")
    if runner.HasField("drain"):
        mode = word(runner_pb2.DrainMode, runner.drain.mode, "DRAIN_MODE_")
        yield "drain", screen.clean(f"{mode} {runner.drain.reason}".strip())
    yield "tasks", f"{runner.used_capacity} of {registration.capacity}"
    if registration.HasField("resources"):
        cores = f"{resources.cpu_millis / 1000:g} cores"
        yield "resources", f"{cores}, {resources.memory_mb} MB memory, {resources.disk_mb} MB disk"
    yield "kinds", ", ".join(_kinds(runner))
    metadata = registration.metadata
    for name, title in _CAPABILITIES.items():
        yield title, screen.clean(str(metadata[name])) if name in metadata else ""
    yield "task types", ", ".join(registration.task_types)
    yield "functions", ", ".join(registration.functions)
    yield "labels", pairs(runner.labels)
    yield "set here", pairs(runner.admin_labels)
    yield "tenants", ", ".join(runner.tenants)
    yield "host", screen.clean(registration.host)
    yield "version", screen.clean(registration.version)
    yield "last seen", screen.format_time(to_datetime(runner.heartbeat_time), exact)
    yield "registered", screen.format_time(to_datetime(runner.register_time), exact)
    yield "succeeded", str(runner.completed_count)
    yield "failed", str(runner.failed_count)
    yield "holds", " ".join(last_segment(task) for task in runner.tasks)


@runners.command()
@click.argument("runner", shell_complete=runner_ids)
@click.argument("labels", nargs=-1, type=PAIR, required=True, metavar="NAME=VALUE...")
@with_client
async def label(client: Client, runner: str, labels: tuple[tuple[str, str], ...]) -> None:
    """Set labels of a runner; an empty value removes the label.

    They override the labels that the runner registered.

    \b
    Example:
      taskyard runners label worker-1 zone=b gpu=
    """
    found = await client.admin.get_runner(runner)
    wanted = {**found.admin_labels, **dict(labels)}
    changed = await client.admin.label_runner(
        runner, {name: value for name, value in wanted.items() if value}
    )
    click.echo(f"{runner}  {screen.shown(pairs(changed.labels)) or 'no labels'}")


@runners.command("delete")
@click.argument("runners_", nargs=-1, required=True, metavar="RUNNER...", shell_complete=runner_ids)
@click.option("--force", is_flag=True, help="Delete it even if it holds tasks; they go to other runners.")
@yes_option
@with_client
async def delete_runner(client: Client, runners_: tuple[str, ...], force: bool, yes: bool) -> int:
    """Delete runners that are gone.

    \b
    Example:
      taskyard runners delete worker-1
    """
    if force:
        confirm(f"Revoke the tasks of {', '.join(runners_)}?", yes)

    async def remove(runner: str) -> str:
        await client.admin.delete_runner(runner, force=force)
        return runner

    return await for_each(client, runners_, remove, lambda runner: click.echo(f"{runner}  deleted"))


@click.command()
@click.argument("runners_", nargs=-1, required=True, metavar="RUNNER...", shell_complete=runner_ids)
@click.option(
    "--mode",
    type=click.Choice(["finish", "release"]),
    default="finish",
    show_default=True,
    help="Let running tasks finish, or stop them at a checkpoint and release them to other runners.",
)
@click.option("--deadline", type=DURATION, metavar="DURATION", help="When finish turns into release.")
@click.option("--reason", default="", help="For the audit trail and other administrators.")
@click.option("--exit", "exit_", is_flag=True, help="Exit the agent after its last task.")
@click.option("--no-wait", is_flag=True, help="Return at once.")
@click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest wait.")
@click.pass_obj
def drain(
    connection: Connection,
    /,
    runners_: tuple[str, ...],
    no_wait: bool,
    timeout: float | None,
    **how: Any,
) -> int:
    """Stop new work on runners and let their tasks finish.

    Waits until they hold no task. A drain stays in force, also over restarts, until `taskyard undrain`.

    \b
    Examples:
      taskyard drain worker-1
      taskyard drain worker-1 worker-2 --deadline 10m --reason "new kernel" --exit
      taskyard drain worker-1 --mode release
    """

    async def execute(client: Client) -> int:
        held = 0
        for runner in runners_:
            held += (await _drain_one(client, runner, **how)).used_capacity
        if not no_wait:
            await _until_empty(client, runners_, held, timeout)
        for runner in runners_:
            click.echo(f"{runner}  {'draining' if no_wait else 'drained'}")
        return 0

    return call(connection, execute)


async def _drain_one(
    client: Client,
    runner: str,
    *,
    mode: Literal["finish", "release"],
    deadline: float | None,
    reason: str,
    exit_: bool,
) -> runner_pb2.Runner:
    return await client.admin.drain(
        runner, mode=mode, deadline=deadline, reason=reason, exit_when_drained=exit_
    )


async def _until_empty(client: Client, runners_: tuple[str, ...], held: int, timeout: float | None) -> None:
    left = held
    try:
        async with asyncio.timeout(timeout):
            with Bar("Draining", held, worth=1) as bar:
                while left:
                    left = sum([(await client.admin.get_runner(one)).used_capacity for one in runners_])
                    bar.reached(max(0, held - left))
                    await asyncio.sleep(POLL_SECONDS if left else 0)
    except TimeoutError:
        waited = screen.span(timedelta(seconds=timeout or 0))
        running = "1 task is" if left == 1 else f"{left} tasks are"
        message = f"{running} still running after {waited}; the drain stays in force"
        raise CommandFailed(f"{message}, `--mode release` releases them to other runners", TIME_UP) from None


@click.command()
@click.argument("runners_", nargs=-1, required=True, metavar="RUNNER...", shell_complete=runner_ids)
@with_client
async def undrain(client: Client, runners_: tuple[str, ...]) -> int:
    """Let drained runners accept work again.

    \b
    Example:
      taskyard undrain worker-1
    """

    def print_runner(runner: runner_pb2.Runner) -> None:
        state = _state(runner)
        click.echo(f"{last_segment(runner.name)}  {screen.paint(state, state)}")

    return await for_each(client, runners_, client.admin.undrain, print_runner)
