"""Commands that create tasks: run, which waits for the task, and submit, which does not."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import Any

import click

from taskyard import errors
from taskyard.cli import screen
from taskyard.cli.failure import FAILED, INTERRUPTED, NO_EXIT_CODE, TIME_UP, CommandFailed
from taskyard.cli.follow import outcome_line
from taskyard.cli.launch_options import creation_options, new_task_of
from taskyard.cli.logs import print_entry
from taskyard.cli.session import Connection, call
from taskyard.client import Client
from taskyard.new_task import NewTask
from taskyard.task import Created, Outcome, Phase, Task

HINT_SECONDS = 3.0


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND [ARGUMENT]...")
@creation_options
@click.option("--detach", "-d", is_flag=True, help="Print the id and return; the task runs on.")
@click.pass_obj
def run(connection: Connection, /, words: tuple[str, ...], detach: bool, **options: Any) -> int:
    """Run a task and show its output.

    Exits with the exit code of the task. Without --retries a failure is not retried. Ctrl-C cancels the
    task; a second Ctrl-C detaches from it.

    \b
    Examples:
      taskyard run -- echo hello
      taskyard run --timeout 5m --retries 2 -- make test
      taskyard run --script build.sh -- release
      taskyard run --detach --delay 10m -- backup.sh
    """
    options["retry"] = options["retry"] or 0
    new = new_task_of(words, options)

    async def execute(client: Client) -> int:
        task = await client.create(new)
        _print_outcome(task)
        if detach:
            click.echo(task.id)
            return 0
        return await _ForegroundTask(client, task).follow()

    return call(connection, execute)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND [ARGUMENT]...")
@creation_options
@click.option(
    "--file", "-f", type=click.File("r"), help="Create the tasks of this file; - is standard input."
)
@click.option(
    "--each", type=click.File("r"), help="One task per line of this file; {} is replaced by the line."
)
@click.option(
    "--dry-run", is_flag=True, help="Create nothing; show whether the task would be accepted and run."
)
@click.pass_obj
def submit(
    connection: Connection, /, words: tuple[str, ...], file: Any, each: Any, dry_run: bool, **options: Any
) -> int:
    """Create a task, or many, and print the ids.

    A file of tasks holds YAML documents, or a JSON object on each line, with the names of the options:
    command, script, function, image, wasm or type; args, id, labels, env, payload, retries, timeout and more.

    \b
    Examples:
      taskyard submit -- ffmpeg -i in.mp4 out.webm
      taskyard submit --id encode-17 --label team=video --script encode.sh
      taskyard submit --function resize --payload '{"width": 640}'
      taskyard submit --file tasks.yaml
      ls *.mp4 | taskyard submit --each - --label team=video -- encode.sh {}
      taskyard submit --dry-run --runner-label gpu=yes -- nvidia-smi
    """
    if file or each:
        if dry_run or (
            file and (each or words or any(value not in (None, ()) for value in options.values()))
        ):
            raise click.UsageError("--file goes with no other option, --each not with --dry-run")
        return call(connection, _many(words, file, each, options))
    new = new_task_of(words, options)

    async def create(client: Client) -> int:
        if dry_run:
            return await _dry_run(client, new)
        task = await client.create(new)
        _print_outcome(task)
        click.echo(task.id)
        return 0

    return call(connection, create)


def _many(words: tuple[str, ...], file: Any, each: Any, options: dict[str, Any]) -> Any:
    from taskyard.cli import batch

    def execute(client: Client) -> Any:
        if file:
            return batch.create_all(client, batch.tasks_of_file(file), None)
        named = words if any("{}" in word for word in words) else (*words, "{}")
        tasks = batch.tasks_of_lines(each, new_task_of(named, options))
        return batch.create_all(client, tasks, batch.counted(each))

    return execute


async def _dry_run(client: Client, new: NewTask) -> int:
    from taskyard.cli.explain import fetch_explanation, print_explanation

    await client.check(new)
    explanation = await fetch_explanation(client, new)
    print_explanation(explanation)
    return 0 if explanation.runnable else FAILED


def _print_outcome(task: Created) -> None:
    messages = {
        Outcome.REPLAYED: "this request was sent before; this is its task",
        Outcome.DROPPED: "its slot is occupied; nothing was created, this is the task in the slot",
        Outcome.REPLACED: f"it replaces {', '.join(task.replaced)}",
    }
    if task.outcome in messages:
        click.echo(f"{task.id}: {messages[task.outcome]}", err=True)


class _ForegroundTask:
    """A task whose output is shown while it runs."""

    def __init__(self, client: Client, task: Task) -> None:
        self._client = client
        self._task = task
        self._interrupts = 0
        self._background: set[asyncio.Task[None]] = set()
        self._left = asyncio.get_running_loop().create_future()

    async def follow(self) -> int:
        """Prints the output of the task until it has ended; returns its exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        following = asyncio.ensure_future(self._print())
        self._spawn(self._hint())
        try:
            await asyncio.wait({following, self._left}, return_when=asyncio.FIRST_COMPLETED)
            if self._left.done():
                raise CommandFailed(
                    f"detached; to see the outcome: `taskyard get {self._task.id}`", INTERRUPTED
                )
            return _exit_code(await following)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            for one in {following, *self._background}:
                one.cancel()

    async def _print(self) -> Task:
        async for entry in self._client.logs(self._task, follow=True):
            print_entry(entry)
        return await self._client.wait(self._task, view="basic")

    def _interrupt(self) -> None:
        self._interrupts += 1
        if self._interrupts == 1:
            click.echo("Cancelling the task; press Ctrl-C again to detach.", err=True)
            self._spawn(self._cancel())
        elif not self._left.done():
            self._left.set_result(None)

    async def _cancel(self) -> None:
        # The task may end before the cancel arrives.
        with contextlib.suppress(errors.TaskTerminal):
            await self._client.cancel(self._task, reason="Ctrl-C")

    async def _hint(self) -> None:
        await asyncio.sleep(HINT_SECONDS)
        now = await self._client.get(self._task, view="basic")
        if now.phase is not Phase.PENDING:
            return
        hint = f"{now.id} is waiting; to see why: `taskyard explain {now.id}`"
        if sys.stderr.isatty():
            click.echo(click.style(hint, dim=True), err=True)
        elif reason := await self._obstacle():
            # In a log the line stays: it is printed for a task that cannot start, not for one that is late.
            click.echo(f"taskyard: {hint} ({reason})", err=True)

    async def _obstacle(self) -> str:
        """Why the task cannot start now; empty if it can, or if no scheduler answers."""
        try:
            found = await self._client.explain(self._task.name)
        except (errors.TaskyardError, CommandFailed):
            return ""
        return "" if found.runnable else screen.clean(found.summary)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _exit_code(task: Task) -> int:
    if task.phase is Phase.SUCCEEDED:
        return 0
    click.echo(f"taskyard: task {outcome_line(task)}", err=True)
    if task.phase in _CODES:
        return _CODES[task.phase]
    code = task.exit_code
    if not code:
        return NO_EXIT_CODE
    # The exit code that a shell uses for a signal.
    return 128 - code if code < 0 else code


_CODES = {Phase.CANCELLED: INTERRUPTED, Phase.TIMED_OUT: TIME_UP}
