"""Many tasks from one command: a file of tasks, or one task per line of a file."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO

import click

from taskyard import errors
from taskyard.cli import screen
from taskyard.cli.failure import FAILED, REFUSED, UNREACHABLE, USAGE, CommandFailed, explain
from taskyard.cli.manifest import json_lines, new_tasks
from taskyard.cli.marked_yaml import YamlError
from taskyard.cli.progress import Bar
from taskyard.cli.screen import plural
from taskyard.client import Client
from taskyard.new_task import NewTask
from taskyard.task import Created
from taskyard.v1.task_service_pb2 import CreateTaskRequest

# Refusals beyond this number are only counted.
MAX_SHOWN_REFUSALS = 10


def tasks_of_file(file: IO[str]) -> Iterator[NewTask]:
    """The tasks of a file with YAML documents, or with a JSON object on each line."""
    name = str(file.name)
    first = file.readline()
    while first and not first.strip():
        first = file.readline()
    # A JSON object that ends on its line; one over several lines is YAML as well.
    if first.lstrip().startswith("{") and first.rstrip().endswith("}"):
        return json_lines(itertools.chain([first], file), name)
    return new_tasks(first + file.read(), name)


def tasks_of_lines(file: IO[str], model: NewTask) -> Iterator[NewTask]:
    """One task like the model per non-empty line; {} in its arguments and its id is replaced by the line."""
    fill = _filler(model.request)
    return (NewTask(fill(line.rstrip("\n"))) for line in file if line.strip())


def _filler(model: CreateTaskRequest) -> Callable[[str], CreateTaskRequest]:
    # Prepared once, because a file may have a hundred thousand lines.
    kind = str(model.task.spec.execution.WhichOneof("kind"))
    words = list(getattr(model.task.spec.execution, kind).args)
    places = [place for place, word in enumerate(words) if "{}" in word]
    program = model.task.spec.execution.command.program

    def fill(line: str) -> CreateTaskRequest:
        request = CreateTaskRequest()
        request.CopyFrom(model)
        execution = request.task.spec.execution
        arguments = getattr(execution, kind).args
        for place in places:
            arguments[place] = words[place].replace("{}", line)
        if "{}" in program:
            execution.command.program = program.replace("{}", line)
        request.task_id = model.task_id.replace("{}", line)
        return request

    return fill


def counted(file: IO[str]) -> int | None:
    """The number of non-empty lines of a file; None if it cannot be read twice."""
    if not file.seekable():
        return None
    count = sum(1 for line in file if line.strip())
    file.seek(0)
    return count


async def create_all(client: Client, tasks: Iterable[NewTask], total: int | None) -> int:
    """Creates the tasks and prints their ids; the exit code is 0 if all were created."""
    created = 0
    refused: list[str] = []
    with Bar("Creating tasks", total) as bar:
        try:
            async for batch in client.create_many(tasks, progress=bar.reached).batches:
                ids = [one.id for one in batch if isinstance(one, Created)]
                bar.echo(ids)
                first = created + len(refused) + 1
                refused += [
                    _refusal(one, client, number)
                    for number, one in enumerate(batch, first)
                    if isinstance(one, errors.TaskyardError)
                ]
                created += len(ids)
        except YamlError as error:
            raise CommandFailed(f"{error} (after creating {plural(created, 'task')})", USAGE) from None
    for line in refused[:MAX_SHOWN_REFUSALS]:
        click.echo(f"taskyard: {screen.shown(line, sys.stderr)}", err=True)
    if len(refused) > MAX_SHOWN_REFUSALS:
        click.echo(f"taskyard: and {len(refused) - MAX_SHOWN_REFUSALS} more", err=True)
    refusals = f"; {len(refused)} refused" if refused else ""
    click.echo(f"Created {plural(created, 'task')}{refusals}.", err=True)
    return FAILED if refused else 0


def _refusal(error: errors.TaskyardError, client: Client, number: int) -> str:
    failure = explain(error, client.context)
    if failure.exit_code in (UNREACHABLE, REFUSED):
        raise failure
    return f"task {number}: {failure}"
