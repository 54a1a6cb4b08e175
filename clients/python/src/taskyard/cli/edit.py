"""Commands that change what a task has: update by options, edit in the user's editor."""

from __future__ import annotations

from typing import Any

import click

from taskyard.cli import printing, screen
from taskyard.cli.complete import task_ids
from taskyard.cli.desired import merge, replace_field
from taskyard.cli.failure import USAGE, CommandFailed
from taskyard.cli.marked_yaml import YamlError, documents
from taskyard.cli.proto_values import fill, plain
from taskyard.cli.session import for_each, with_client
from taskyard.cli.values import DURATION, PAIR
from taskyard.client import Client
from taskyard.convert import to_duration
from taskyard.task import Task
from taskyard.v1 import task_pb2

_DURATIONS = {
    "timeout": "attempt_timeout",
    "queue_timeout": "queue_timeout",
    "total_timeout": "total_timeout",
    "retention": "retention",
}


@click.command()
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...", shell_complete=task_ids)
@click.option("--label", "-l", "labels", type=PAIR, multiple=True, help="Label; an empty value removes it.")
@click.option("--priority", type=click.IntRange(0, 1000), help="Higher goes first.")
@click.option("--retries", type=click.IntRange(0, 1000), help="How often a failure is retried.")
@click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest time of one attempt.")
@click.option("--queue-timeout", type=DURATION, metavar="DURATION", help="Longest wait for a runner.")
@click.option("--total-timeout", type=DURATION, metavar="DURATION", help="Longest time in all.")
@click.option("--retention", type=DURATION, metavar="DURATION", help="How long it is kept after its end.")
@click.option("--callback", metavar="URL", help="URL that is called when it has ended.")
@with_client
async def update(client: Client, /, tasks: tuple[str, ...], **options: Any) -> int:
    """Change labels, priority and other fields of tasks.

    Labels, retention and callback can always change, the priority while the task waits, the rest until it has
    started.

    \b
    Examples:
      taskyard update encode-17 --priority 500
      taskyard update encode-17 encode-18 -l team=video -l draft=
    """
    if all(value in (None, ()) for value in options.values()):
        raise click.UsageError("nothing to change: give --label, --priority or another option")

    async def change(name: str) -> Task:
        task = await client.get(name)
        return await client.update(task, *_changed(task.proto, options))

    return await for_each(client, tasks, change, lambda task: click.echo(f"{task.id}  changed"))


def _changed(task: task_pb2.Task, options: dict[str, Any]) -> list[str]:
    """Changes a task by the options; the paths of the changed fields."""
    paths = []
    if options["labels"]:
        wanted = {**task.metadata.labels, **dict(options["labels"])}
        task.metadata.labels.clear()
        task.metadata.labels.update({name: value for name, value in wanted.items() if value})
        paths.append("metadata.labels")
    if options["priority"] is not None:
        task.spec.priority = options["priority"]
        paths.append("spec.priority")
    if options["retries"] is not None:
        task.spec.retry.max_retries = options["retries"]
        paths.append("spec.retry")
    if options["callback"] is not None:
        task.spec.callback.url = options["callback"]
        paths.append("spec.callback")
    for option, field in _DURATIONS.items():
        if options[option] is not None:
            getattr(task.spec, field).CopyFrom(to_duration(options[option]))
            paths.append(f"spec.{field}")
    return paths


@click.command()
@click.argument("task", shell_complete=task_ids)
@with_client
async def edit(client: Client, task: str) -> None:
    """Change a task in your editor.

    Opens its labels, annotations and spec as YAML in VISUAL or EDITOR, and changes what you have changed. If
    the task changes meanwhile, nothing is overwritten.

    \b
    Example:
      EDITOR=nano taskyard edit encode-17
    """
    current = await client.get(task)
    edited = click.edit(_text(current), extension=".yaml")
    paths = [] if edited is None else _changed_paths(current.proto, wanted := _parsed(edited, current))
    if not paths:
        click.echo("Nothing was changed.", err=True)
        return
    _, _, difference = merge(current.proto, wanted, 2)
    for part, name in (path.split(".") for path in paths):
        source, target = getattr(wanted, part), getattr(current.proto, part)
        if _has(source, name):
            replace_field(target, source.DESCRIPTOR.fields_by_name[name], getattr(source, name))
        else:
            target.ClearField(name)
            difference.append(f"- {part}.{name}")
    changed = await client.update(current, *paths)
    for line in difference:
        click.echo(f"  {screen.clean(line)}")
    click.echo(f"{changed.id}  changed")


def _text(task: Task) -> str:
    shown = _mutable(task.proto)
    shown.spec.ClearField("payload")
    values = plain(shown)
    if task.payload is not None and not isinstance(task.payload, bytes):
        values.setdefault("spec", {})["payload"] = task.payload
    head = (
        f"# Task {task.id}, {task.phase}. What you change here is changed; an unchanged file changes nothing."
    )
    return f"{head}\n{printing.yaml_text(values)}"


def _mutable(task: task_pb2.Task) -> task_pb2.Task:
    """The fields of a task that may be changed at some time."""
    shown = task_pb2.Task()
    shown.metadata.labels.update(task.metadata.labels)
    if task.metadata.HasField("annotations"):
        shown.metadata.annotations.CopyFrom(task.metadata.annotations)
    shown.spec.CopyFrom(task.spec)
    return shown


def _parsed(text: str, current: Task) -> task_pb2.Task:
    wanted = task_pb2.Task()
    try:
        found = list(documents(text, "edited"))
        if len(found) != 1 or not isinstance(found[0].value, dict):
            raise CommandFailed("the edited text must be one YAML document with metadata and spec", USAGE)
        fill(wanted, found[0].value, found[0], ())
    except YamlError as error:
        raise CommandFailed(str(error), USAGE) from None
    # The same document in other words is no change, and bytes are not shown.
    if isinstance(current.payload, bytes) or Task(wanted).payload == current.payload:
        wanted.spec.payload.CopyFrom(current.proto.spec.payload)
        if not current.proto.spec.HasField("payload"):
            wanted.spec.ClearField("payload")
    return wanted


def _changed_paths(before: task_pb2.Task, wanted: task_pb2.Task) -> list[str]:
    """The paths of the fields that are changed, added or removed."""
    shown = _mutable(before)
    paths = []
    for part in ("metadata", "spec"):
        old, new = getattr(shown, part), getattr(wanted, part)
        for name in old.DESCRIPTOR.fields_by_name:
            if _has(old, name) != _has(new, name) or getattr(old, name) != getattr(new, name):
                paths.append(f"{part}.{name}")
    return paths


def _has(message: Any, name: str) -> bool:
    return any(field.name == name for field, _ in message.ListFields())
