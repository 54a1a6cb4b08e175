"""Commands that create or update tenants, task types, schedules and tasks from a file: apply, diff."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import click

from taskyard import errors
from taskyard import presets as shipped
from taskyard.cli import screen
from taskyard.cli.desired import Change, change_of
from taskyard.cli.failure import FAILED, USAGE, CommandFailed, explain
from taskyard.cli.manifest import KINDS, Resource, resources
from taskyard.cli.marked_yaml import YamlError
from taskyard.cli.session import with_client
from taskyard.client import Client
from taskyard.names import last_segment
from taskyard.new_task import NewTask
from taskyard.v1 import task_pb2
from taskyard.v1.task_service_pb2 import CreateTaskRequest

_SUFFIXES = (".yaml", ".yml", ".json")


file_option = click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
    help="YAML file, folder of them, or - for standard input; repeatable.",
)
preset_option = click.option(
    "--preset",
    "presets",
    multiple=True,
    type=click.Choice(shipped.NAMES),
    help="The task types of this preset; repeatable. `taskyard presets` lists them.",
)
files_argument = click.argument(
    "more", nargs=-1, type=click.Path(exists=True, allow_dash=True, path_type=Path), metavar="[FILE]..."
)


@click.command()
@files_argument
@file_option
@preset_option
@click.option("--dry-run", is_flag=True, help="Change nothing; the server checks what it would change.")
@with_client
async def apply(
    client: Client, more: tuple[Path, ...], files: tuple[Path, ...], presets: tuple[str, ...], dry_run: bool
) -> int:
    """Create or update tenants, types, schedules and tasks from a file.

    A file holds YAML documents with `kind: Tenant`, `TaskType`, `Limit`, `Schedule` or `Task` and an `id`.
    Missing resources are created, different ones are changed, equal ones are left alone; applying a file
    again changes nothing. Fields that a file does not name keep their values. Tasks are created after those
    that they name in `after`. The server validates every document before the first one is applied.

    \b
    Examples:
      taskyard apply -f yard.yaml
      taskyard apply -f yard.yaml --dry-run
      cat encode.yaml | taskyard apply -f -
      taskyard apply --preset aiopslab
    """
    planned = await _plan(client, (*map(shipped.path, presets), *files, *more))
    counts = {"created": 0, "changed": 0, "unchanged": 0}
    for resource, change, remark in planned:
        if not dry_run:
            await change.make()
        counts[change.verb] += 1
        _print_change(change, resource, dry_run, remark if dry_run else "")
    summary = ", ".join(f"{count} {verb}" for verb, count in counts.items() if count)
    click.echo(f"{summary}{' (dry run: nothing was changed)' if dry_run else ''}", err=True)
    return 0


@click.command()
@files_argument
@file_option
@preset_option
@with_client
async def diff(
    client: Client, more: tuple[Path, ...], files: tuple[Path, ...], presets: tuple[str, ...]
) -> int:
    """Show what apply would change.

    The exit code is 0 if nothing would change, 1 if something would.

    \b
    Example:
      taskyard diff -f yard.yaml || taskyard apply -f yard.yaml
    """
    different = False
    for resource, change, remark in await _plan(client, (*map(shipped.path, presets), *files, *more)):
        if change.verb != "unchanged":
            different = True
            _print_change(change, resource, True, remark)
    return FAILED if different else 0


async def _plan(client: Client, files: Sequence[Path]) -> list[tuple[Resource, Change, str]]:
    """The change of every resource, validated by the server, and a remark on what it could not check.

    Everything is compared and validated before the first change: a mistake in the last document changes
    nothing.
    """
    if not files:
        raise click.UsageError("name a file, with -f or without, or a --preset")
    try:
        wanted = [resource for file in files for resource in _read(file)]
    except YamlError as error:
        raise CommandFailed(str(error), USAGE) from None
    if not wanted:
        raise CommandFailed("the files contain no documents", USAGE)
    ordered = in_order(wanted)
    new: set[str] = set()
    planned: list[tuple[Resource, Change, str]] = []
    types: set[str] = set()
    limits: set[str] = set()
    for resource in ordered:
        change = await change_of(client, resource)
        remark = ""
        if resource.kind == "TaskType" and change.verb != "unchanged":
            types.add(resource.id)
        if resource.kind == "Limit" and change.verb == "created":
            limits.add(resource.id)
        task_type = _task_type(resource)
        if resource.kind == "Task" and change.verb == "created":
            new.add(resource.id)
            # The group exists once the first of its tasks does.
            new.add(f"groups/{resource.message.request.task.metadata.group}")
        if task_type in types and change.verb != "unchanged":
            remark = "checked once its type is applied"
        elif change.verb != "unchanged" and not limits.isdisjoint(_limits(resource)):
            remark = "checked once its limits are applied"
        elif resource.kind == "Task" and not new.isdisjoint(prerequisites(resource)):
            await _validate(
                client, resource, Change(change.verb, [], partial(_check_alone, client, resource, new))
            )
        else:
            await _validate(client, resource, change)
        planned.append((resource, change, remark))
    return planned


def _task_type(resource: Resource) -> str:
    """The type that a task, or the task of a schedule, has."""
    if resource.kind == "Task":
        return str(resource.message.request.task.spec.task_type)
    return str(resource.message.template.spec.task_type) if resource.kind == "Schedule" else ""


def _limits(resource: Resource) -> list[str]:
    """The ids of the limits that a task, or the task of a schedule, names."""
    if resource.kind not in ("Task", "Schedule"):
        return []
    task = resource.message.request.task if resource.kind == "Task" else resource.message.template
    return [last_segment(use.limit) for use in task.spec.limits]


async def _check_alone(client: Client, resource: Resource, new: set[str], *, validate_only: bool) -> None:
    """Have the server check a task without the prerequisites that the same files create before it."""
    request = CreateTaskRequest()
    request.CopyFrom(resource.message.request)
    kept = [entry for entry in request.task.spec.after if prerequisite(entry) not in new]
    del request.task.spec.after[:]
    request.task.spec.after.extend(kept)
    await client.check(NewTask(request))


def prerequisites(resource: Resource) -> list[str]:
    """The ids of the tasks that a task waits for."""
    return [prerequisite(entry) for entry in resource.message.request.task.spec.after]


def prerequisite(entry: task_pb2.Dependency) -> str:
    """The id of a task, or groups/{id}."""
    return f"groups/{last_segment(entry.group)}" if entry.group else last_segment(entry.task)


def in_order(wanted: Sequence[Resource]) -> list[Resource]:
    """Tenants, types, then tasks, each after those that it waits for; raises CommandFailed for a cycle."""
    others = sorted((one for one in wanted if one.kind != "Task"), key=lambda one: KINDS.index(one.kind))
    tasks = {one.id: one for one in wanted if one.kind == "Task"}
    if len(others) + len(tasks) < len(wanted):
        # An id that is used twice is applied twice, in the order of the files.
        return sorted(wanted, key=lambda one: KINDS.index(one.kind))
    # A group waits for its tasks.
    named: dict[str, list[str]] = {}
    for id_, task in tasks.items():
        named[id_] = prerequisites(task)
        if group := task.message.request.task.metadata.group:
            named.setdefault(f"groups/{group}", []).append(id_)
    try:
        ordered = TopologicalSorter(named).static_order()
        return [*others, *(tasks[id_] for id_ in ordered if id_ in tasks)]
    except CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise CommandFailed(f"the tasks wait for each other: {cycle}; remove one of them", USAGE) from None


async def _validate(client: Client, resource: Resource, change: Change) -> None:
    try:
        await change.make(validate_only=True)
    except errors.TaskyardError as error:
        failure = explain(error, client.context)
        line, column = resource.document.places.get((), (1, 1))
        where = f"{resource.document.file}:{line}:{column}: {resource.kind} {resource.id}"
        raise CommandFailed(f"{where} would be refused: {failure}", failure.exit_code) from error


def _read(file: Path) -> Sequence[Resource]:
    if file.is_dir():
        inside = sorted(one for one in file.iterdir() if one.suffix in _SUFFIXES)
        return [resource for one in inside for resource in _read(one)]
    try:
        with click.open_file(str(file), encoding="utf-8") as opened:
            text = opened.read()
    except UnicodeDecodeError as error:
        raise YamlError(f"{file}:1:1: not UTF-8 at byte {error.start}") from None
    found = list(resources(text, "standard input" if str(file) == "-" else str(file)))
    for resource in found:
        if not resource.id:
            raise resource.document.error(
                (), "a task that is applied needs an id, so that applying it again creates no second task"
            )
    return found


def _print_change(change: Change, resource: Resource, dry_run: bool, remark: str) -> None:
    verb = f"would be {change.verb}" if dry_run and change.verb != "unchanged" else change.verb
    more = f" ({remark})" if remark else ""
    click.echo(f"{resource.kind} {resource.id}  {screen.paint(verb, change.verb)}{more}")
    for line in change.difference:
        colour = {"+": "created", "-": "error"}.get(line[0], "changed")
        click.echo(f"  {screen.paint(screen.clean(line), colour)}")
