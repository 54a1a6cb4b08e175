"""The options that define a new task."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from taskyard import script
from taskyard.builders import command, container, function, typed, wasm
from taskyard.cli.complete import type_ids
from taskyard.cli.values import AFTER, DURATION, JSON, PAIR
from taskyard.new_task import NewTask

_SUFFIXES = {".sh": "bash", ".bash": "bash", ".py": "python", ".js": "node", ".mjs": "node"}
_KINDS: tuple[str, ...] = ("script_", "function_", "image", "wasm_")
_MODULE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--script", "script_", type=click.File("r"), help="Run this script; COMMAND is its arguments."
    ),
    click.option(
        "--interpreter", help="bash, python, node or a program; by default after the script's name."
    ),
    click.option(
        "--function", "function_", metavar="NAME", help="Call this function of a runner's application."
    ),
    click.option("--image", metavar="IMAGE", help="Run this container image; COMMAND is its arguments."),
    click.option("--wasm", "wasm_", type=_MODULE, help="Run this WASI module."),
    click.option(
        "--type",
        "task_type",
        metavar="TYPE",
        shell_complete=type_ids,
        help="Task type, with its defaults if it is registered.",
    ),
    click.option("--payload", type=JSON, help="Input as JSON, or @FILE."),
    click.option("--id", metavar="ID", help="Id of the task; by default the server creates one."),
    click.option("--request-id", metavar="ID", help="Repeating with the same one returns the first task."),
    click.option("--label", "-l", "labels", type=PAIR, multiple=True, help="Label of the task; repeatable."),
    click.option("--env", "-e", type=PAIR, multiple=True, help="Environment variable; repeatable."),
    click.option(
        "--workdir", "working_directory", metavar="PATH", help="Working directory; by default a new one."
    ),
    click.option("--delay", type=DURATION, metavar="DURATION", help="Start no earlier than this from now."),
    click.option("--priority", type=click.IntRange(0, 1000), help="Higher goes first.  [default: 10]"),
    click.option("--retries", "retry", type=click.IntRange(0, 1000), help="How often a failure is retried."),
    click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest time of one attempt."),
    click.option("--queue-timeout", type=DURATION, metavar="DURATION", help="Longest wait for a runner."),
    click.option("--total-timeout", type=DURATION, metavar="DURATION", help="Longest time in all."),
    click.option(
        "--after",
        type=AFTER,
        multiple=True,
        help="Start once these have succeeded; TASK:ended for any end, ALIAS=TASK passes its result on.",
    ),
    click.option("--slot", help="At most one task of a slot runs at a time."),
    click.option("--cpu", type=click.FloatRange(0), help="Cores to reserve."),
    click.option(
        "--memory", "memory_mb", type=click.IntRange(0), metavar="MB", help="Memory to reserve, in MB."
    ),
    click.option(
        "--runner-label", "runner_labels", type=PAIR, multiple=True, help="Only runners with it; repeatable."
    ),
)


def creation_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def new_task_of(words: tuple[str, ...], given: dict[str, Any]) -> NewTask:
    """The task that the command line describes; raises UsageError unless it names exactly one execution."""
    options = {name: value for name, value in given.items() if value not in (None, (), "")}
    kinds = {name: options.pop(name) for name in _KINDS if name in options}
    if len(kinds) > 1:
        raise click.UsageError("--script, --function, --image and --wasm exclude each other")
    if "interpreter" in options and "script_" not in kinds:
        raise click.UsageError("--interpreter needs --script")
    interpreter = options.pop("interpreter", "")
    if "delay" in options:
        options["not_before"] = datetime.now(UTC) + timedelta(seconds=options.pop("delay"))
    if "after" in options:
        options["after"] = [one for given in options["after"] for one in given]
    for name in ("labels", "env", "runner_labels"):
        if name in options:
            options[name] = dict(options[name])
    try:
        return _build(words, kinds, interpreter, options)
    except TypeError:
        raise click.UsageError("--workdir goes with a command, a script or an image") from None
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _build(
    words: tuple[str, ...], kinds: dict[str, Any], interpreter: str, options: dict[str, Any]
) -> NewTask:
    if file := kinds.get("script_"):
        return _script(file, words, interpreter, options)
    if image := kinds.get("image"):
        return container(image, *words, **options)
    if module := kinds.get("wasm_"):
        return wasm(module, *words, **options)
    if words and "function_" not in kinds:
        return command(words[0], *words[1:], **options)
    if words:
        raise click.UsageError("--function takes --payload, and no COMMAND")
    if "function_" in kinds:
        return function(kinds["function_"], options.pop("payload", None), **options)
    if "task_type" in options:
        return typed(options.pop("task_type"), options.pop("payload", None), **options)
    raise click.UsageError(
        "nothing to run: give -- COMMAND, --script FILE, --function NAME, --image, --wasm or --type"
    )


def _script(file: Any, words: tuple[str, ...], interpreter: str, options: dict[str, Any]) -> NewTask:
    body = file.read()
    named = interpreter or _SUFFIXES.get(Path(str(file.name)).suffix, "bash")
    if named in ("bash", "python", "node"):
        make: Callable[..., NewTask] = getattr(script, named)
        return make(body, *words, **options)
    return script.custom(named, body, *words, **options)
