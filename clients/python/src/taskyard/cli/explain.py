"""The command that tells why a task does not run."""

from __future__ import annotations

import click

from taskyard import errors
from taskyard.cli import screen
from taskyard.cli.failure import FAILED, UNREACHABLE, CommandFailed
from taskyard.cli.read import exact_option, output_option
from taskyard.cli.session import with_client
from taskyard.client import Client
from taskyard.explanation import Explanation, Verdict
from taskyard.new_task import NewTask


@click.command()
@click.argument("task")
@output_option("text", "json", "yaml")
@exact_option
@with_client
async def explain(client: Client, task: str, output: str, exact: bool) -> int:
    """Tell why a task does not run.

    Shows every gate that the task has to pass, every runner with what keeps it from taking the task, and what
    would have to change. The exit code is 0 if it runs or could at once, 1 otherwise. `taskyard submit
    --dry-run` answers the same for a task that is not there yet.

    \b
    Examples:
      taskyard explain encode-17
      taskyard explain encode-17 -o json | jq '.runners[].remedy'
    """
    answer = await ask(client, task)
    if output == "text":
        print_explanation(answer, exact)
    else:
        screen.print_message(answer.proto, output)
    return 0 if answer.runnable else FAILED


async def ask(client: Client, subject: str | NewTask) -> Explanation:
    """The scheduler's answer; raises CommandFailed if no scheduler answers."""
    try:
        return await client.explain(subject)
    except errors.Unavailable as error:
        if error.reason:
            raise
        where = client.context.scheduler
        raise CommandFailed(
            f"no scheduler answers at {where}; it decides what runs, so start it, or set TASKYARD_SCHEDULER",
            UNREACHABLE,
        ) from error


def print_explanation(answer: Explanation, exact: bool = False) -> None:
    """The summary, then every gate, then every runner; what is in the way with its remedy."""
    click.echo(screen.clean(answer.summary))
    if answer.earliest_time:
        click.echo(f"Not before {screen.moment(answer.earliest_time, exact)}.")
    gates = screen.Table("GATE", "STATE", "WHY", "WHAT WOULD CHANGE IT")
    if answer.gates:
        click.echo()
    gates.add(_gate(gate, exact) for gate in answer.gates)
    runners = screen.Table("RUNNER", "STATE", "WHY", "WHAT WOULD CHANGE IT")
    if answer.runners:
        click.echo()
    runners.add(_runner(runner) for runner in answer.runners)


def _gate(gate: Verdict, exact: bool) -> tuple[str, ...]:
    opens = f" (opens {screen.moment(gate.open_time, exact)})" if gate.open_time else ""
    state = "open" if gate.passed else "closed"
    return gate.name, state, screen.clean(gate.message) + opens, screen.clean(gate.remedy)


def _runner(runner: Verdict) -> tuple[str, ...]:
    state = "could take it" if runner.passed else runner.obstacle
    return runner.name, state, screen.clean(runner.message), screen.clean(runner.remedy)
