"""The command that measures how fast a Taskyard is: creates real tasks, lets them run, and removes them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from datetime import timedelta
from statistics import quantiles
from uuid import uuid4

import click

from taskyard import errors
from taskyard.builders import command
from taskyard.cli import screen
from taskyard.cli.failure import FAILED, CommandFailed
from taskyard.cli.progress import Bar
from taskyard.cli.session import with_client
from taskyard.client import Client
from taskyard.task import Created, Phase, Task

# Concurrent delete calls.
DELETES = 32


@click.command()
@click.option(
    "--tasks",
    "-n",
    type=click.IntRange(2, 1_000_000),
    default=200,
    show_default=True,
    help="Number of tasks.",
)
@click.option("--keep", is_flag=True, help="Keep the tasks; they have the label taskyard-bench.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] [COMMAND]...")
@with_client
async def bench(client: Client, tasks: int, keep: bool, words: tuple[str, ...]) -> int:
    """Measure how fast this Taskyard is.

    Creates tasks as fast as the server accepts them, waits until the runners have run them, and deletes them.
    Without a COMMAND each task runs `true`. The result depends on your runners and your database.

    \b
    Examples:
      taskyard bench
      taskyard bench -n 2000 -- sleep 0.1
    """
    mark = uuid4().hex[:12]
    program = words or ("true",)
    new = (command(*program, labels={"taskyard-bench": mark}, retry=0) for _ in range(tasks))
    began = time.monotonic()
    with Bar("Creating tasks", tasks) as bar:
        made = [one async for one in client.create_many(new, progress=bar.reached)]
    submitted = time.monotonic() - began
    created = [one for one in made if isinstance(one, Created)]
    refused = [one for one in made if isinstance(one, errors.TaskyardError)]
    if not created:
        raise CommandFailed(f"no task was created: {refused[0]}")
    try:
        ended = await _run(client, created)
        took = time.monotonic() - began
    finally:
        if not keep:
            await _remove(client, created, mark)
    screen.print_fields(_fields(ended, submitted, took, len(refused)))
    return 0 if all(task.phase is Phase.SUCCEEDED for task in ended) and not refused else FAILED


async def _run(client: Client, created: Sequence[Created]) -> list[Task]:
    ended: list[Task] = []
    with Bar("Running tasks", len(created)) as bar:
        async for task in client.wait_all(list(created)):
            ended.append(task)
            bar.reached(len(ended))
    return ended


async def _remove(client: Client, created: Sequence[Created], mark: str) -> None:
    """Cancels tasks that still run, and deletes the ended ones."""
    async for _ in client.cancel_all(f'metadata.labels.taskyard-bench = "{mark}" AND status.phase = LIVE'):
        pass
    room = asyncio.Semaphore(DELETES)

    async def delete(task: Created, bar: Bar) -> None:
        async with room:
            # A task that is still stopping is left to its retention.
            with contextlib.suppress(errors.FailedPrecondition):
                await client.delete(task, missing_ok=True)
            bar.advance()

    with Bar("Removing tasks", len(created)) as bar:
        await asyncio.gather(*(delete(task, bar) for task in created))


def _fields(ended: Sequence[Task], submitted: float, took: float, refused: int) -> list[tuple[str, str]]:
    well = sum(task.phase is Phase.SUCCEEDED for task in ended)
    waits = [t.start_time - t.create_time for t in ended if t.start_time and t.create_time]
    runs = [t.end_time - t.start_time for t in ended if t.start_time and t.end_time]
    whole = [t.end_time - t.create_time for t in ended if t.end_time and t.create_time]
    return [
        ("tasks", f"{len(ended)}, {well} succeeded{f', {refused} refused' if refused else ''}"),
        ("created", f"{len(ended) / submitted:,.0f} a second"),
        ("done", f"{len(ended) / took:,.0f} a second, from the first create to the last end"),
        ("create to start", _spread(waits)),
        ("start to end", _spread(runs)),
        ("create to end", _spread(whole)),
    ]


def _spread(lengths: Sequence[timedelta]) -> str:
    if len(lengths) < 2:
        return ""
    cuts = quantiles((length.total_seconds() for length in lengths), n=100, method="inclusive")
    p50, p99 = (screen.span(timedelta(seconds=cuts[n - 1])) for n in (50, 99))
    return f"p50 {p50}, p99 {p99}, longest {screen.span(max(lengths))}"
