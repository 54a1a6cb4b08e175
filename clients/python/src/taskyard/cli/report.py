"""The command by which the owner of an external task reports its status."""

from __future__ import annotations

from typing import Any

import click

from taskyard import words
from taskyard.cli.complete import task_ids
from taskyard.cli.session import with_client
from taskyard.cli.values import JSON
from taskyard.client import Client
from taskyard.v1 import task_pb2

_PHASES = {
    task_pb2.TASK_PHASE_RUNNING: "running",
    task_pb2.TASK_PHASE_SUCCEEDED: "succeeded",
    task_pb2.TASK_PHASE_FAILED: "failed",
}


@click.command()
@click.argument("task", shell_complete=task_ids)
@click.argument("phase", required=False, default="")
@click.option("--percent", type=click.IntRange(0, 100), default=0, help="Progress.")
@click.option("--message", default="", help="What it does now; of a failure, what went wrong.")
@click.option("--details", type=JSON, help="Members to set in its details, as JSON or @FILE.")
@click.option("--result", type=JSON, help="Its result, as JSON or @FILE.")
@with_client
async def report(
    client: Client, task: str, phase: str, percent: int, message: str, details: Any, result: Any
) -> int:
    """Report the status of an external task, as its owner.

    PHASE is running, succeeded or failed (in_progress and completed mean the same). Without it only progress
    and details change.

    \b
    Examples:
      taskyard report node-7 running --percent 50 --message "half of the nodes"
      taskyard report node-7 --details '{"added": 2}'
      taskyard report node-7 succeeded --result '{"nodes": 3}'
    """
    if details is not None and not isinstance(details, dict):
        raise click.UsageError("--details is a JSON object, such as '{\"added\": 2}'")
    now = await client.report(
        task, _phase(phase), percent=percent, message=message, output=result, details=details
    )
    click.echo(f"{now.id}  {now.phase}")
    return 0


def _phase(word: str) -> Any:
    if not word:
        return None
    try:
        return _PHASES[words.parse_phase(word)]
    except (words.UnknownTaskPhase, KeyError):
        raise click.UsageError(f"{word!r} is not one of running, succeeded, failed") from None
