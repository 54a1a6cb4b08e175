"""The command that explains why a task does not run."""

from __future__ import annotations

import click

from taskyard import errors
from taskyard.cli import printing, screen
from taskyard.cli.complete import task_ids
from taskyard.cli.failure import FAILED, UNREACHABLE, CommandFailed
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.session import with_client
from taskyard.client import Client
from taskyard.explanation import Explanation, Verdict
from taskyard.new_task import NewTask


@click.command()
@click.argument("task", shell_complete=task_ids)
@output_option("text", "json", "yaml")
@exact_option
@with_client
async def explain(client: Client, task: str, output: str, exact: bool) -> int:
    """Explain why a task does not run.

    Shows every gate that the task has to pass, every runner with its obstacle, and what would have to change.
    The exit code is 0 if the task runs or could run at once, 1 otherwise. `taskyard submit --dry-run`
    explains a task that does not exist yet.

    \b
    Examples:
      taskyard explain encode-17
      taskyard explain encode-17 -o json | jq '.runners[].remedy'
    """
    explanation = await fetch_explanation(client, task)
    if output == "text":
        print_explanation(explanation, exact)
    else:
        printing.print_message(explanation.proto, output)
    return 0 if explanation.runnable else FAILED


async def fetch_explanation(client: Client, subject: str | NewTask) -> Explanation:
    """The scheduler's explanation; raises CommandFailed if no scheduler answers."""
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


def print_explanation(explanation: Explanation, exact: bool = False) -> None:
    """Prints the summary, every gate and every runner; obstacles with their remedy."""
    for line in screen.wrapped(screen.clean(explanation.summary)):
        click.echo(line)
    if explanation.earliest_time:
        click.echo(f"Not before {screen.format_time(explanation.earliest_time, exact)}.")
    _print_verdicts("Gates", explanation.gates, exact)
    _print_verdicts("Runners", explanation.runners, exact)


def _print_verdicts(title: str, verdicts: list[Verdict], exact: bool) -> None:
    if not verdicts:
        return
    click.echo(f"\n{screen.dim(title)}")
    widest = max(len(verdict.name) for verdict in verdicts)
    for verdict in verdicts:
        mark = screen.paint("✓", "open") if verdict.passed else screen.paint("✗", "closed")
        why = screen.clean(verdict.message)
        if verdict.open_time:
            why += f" (opens {screen.format_time(verdict.open_time, exact)})"
        first, *others = screen.wrapped(why, indent=widest + 6) or [""]
        click.echo(f"  {mark} {verdict.name.ljust(widest)}  {first}".rstrip())
        if verdict.remedy and not verdict.passed:
            remedy, *more = screen.wrapped(screen.clean(verdict.remedy), indent=widest + 8)
            others += [f"→ {remedy}", *(f"  {line}" for line in more)]
        for line in others:
            click.echo(f"{' ' * (widest + 6)}{line}")
