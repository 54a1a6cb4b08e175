"""The options that define a new task."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from taskyard import script
from taskyard.builders import command, container, function, typed, wasm
from taskyard.cli.complete import task_ids, type_ids
from taskyard.cli.values import (
    AFTER,
    DURATION,
    ENTITY,
    JSON,
    LIMIT_USE,
    PAIR,
    PREFERENCE,
    SELECTOR,
    TIME,
    WORD,
)
from taskyard.limits import MAX_STEPS
from taskyard.new_task import NewTask
from taskyard.words import Invalid

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
    click.option("--annotation", "annotations", type=PAIR, multiple=True, help="Stored only; repeatable."),
    click.option("--parent", "parent_task", metavar="NAME", help="Full name of the parent task."),
    click.option("--group", metavar="ID", help="Group that the task joins; its first task makes it."),
    click.option("--delay", type=DURATION, metavar="DURATION", help="Start no earlier than this from now."),
    click.option("--not-before", type=TIME, metavar="TIME", help="Start no earlier: 2026-01-31T12:00:00Z."),
    click.option("--priority", type=click.IntRange(0, 1000), help="Higher goes first.  [default: 10]"),
    click.option("--retries", "retry", type=click.IntRange(0, 1000), help="How often a failure is retried."),
    click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest time of one attempt."),
    click.option("--queue-timeout", type=DURATION, metavar="DURATION", help="Longest wait for a runner."),
    click.option("--total-timeout", type=DURATION, metavar="DURATION", help="Longest time in all."),
    click.option("--silence-timeout", type=DURATION, metavar="DURATION", help="Longest time without a sign."),
    click.option("--stop-grace-period", type=DURATION, metavar="DURATION", help="Time to stop by itself."),
    click.option("--checkpoint-interval", type=DURATION, metavar="DURATION", help="How often to save."),
    click.option("--orphan-timeout", type=DURATION, metavar="DURATION", help="Run on without a scheduler."),
    click.option("--retention", type=DURATION, metavar="DURATION", help="How long it is kept after its end."),
    click.option("--max-steps", type=click.IntRange(1, MAX_STEPS), help="Steps the workload may take."),
    click.option("--restart", type=WORD, help="never, on_failure or always."),
    click.option("--backoff", type=DURATION, metavar="DURATION", help="First delay before a retry."),
    click.option("--max-backoff", type=DURATION, metavar="DURATION", help="Longest delay before a retry."),
    click.option("--backoff-factor", type=float, help="How much longer each delay is."),
    click.option("--jitter", type=WORD, help="none, full, equal or decorrelated."),
    click.option("--retry-on-timeout", is_flag=True, default=None, help="Retry after a timeout as well."),
    click.option("--max-runner-losses", type=click.IntRange(0, 1000), help="Lost runners it survives."),
    click.option(
        "--after",
        type=AFTER,
        multiple=True,
        shell_complete=task_ids,
        help="Start once these or groups/GROUP succeeded; TASK:ended: any end, ALIAS=TASK: with its result.",
    ),
    click.option(
        "--limit",
        "limits",
        type=LIMIT_USE,
        multiple=True,
        help="Named limit that has to admit it: LIMIT, LIMIT:KEY or LIMIT:KEY*UNITS; repeatable.",
    ),
    click.option("--slot", help="At most one task of a slot runs at a time."),
    click.option("--entity", type=ENTITY, metavar="TYPE/ID", help="What the task works on; makes the slot."),
    click.option("--admission", type=WORD, help="queue, replace or drop_if_running, if the slot is taken."),
    click.option("--overlap", type=WORD, help="forbid or allow a second run beside one out of reach."),
    click.option("--on-runner-lost", type=WORD, help="wait, redistribute, fail or hold."),
    click.option("--callback", metavar="URL", help="Called with the ended task."),
    click.option("--callback-header", "callback_headers", type=PAIR, multiple=True, help="Repeatable."),
    click.option("--cpu", type=click.FloatRange(0), help="Cores to reserve."),
    click.option(
        "--memory", "memory_mb", type=click.IntRange(0), metavar="MB", help="Memory to reserve, in MB."
    ),
    click.option("--disk", "disk_mb", type=click.IntRange(0), metavar="MB", help="Disk to reserve, in MB."),
    click.option("--resource", "extended", type=PAIR, multiple=True, help="Other resource, such as gpu=1."),
    click.option(
        "--runner-label", "runner_labels", type=PAIR, multiple=True, help="Only runners with it; repeatable."
    ),
    click.option("--runner", "runner_ids", metavar="ID", multiple=True, help="Only this runner; repeatable."),
    click.option(
        "--tag",
        "tags",
        metavar="TAG",
        multiple=True,
        help="Only runners with this key or value.",
    ),
    click.option(
        "--selector", type=SELECTOR, metavar="SELECTOR", help="Only runners such as zone=eu,gpu,!spot."
    ),
    click.option(
        "--prefer", type=PREFERENCE, metavar="SELECTOR[@WEIGHT]", multiple=True, help="Better runners."
    ),
    click.option("--avoid", type=SELECTOR, metavar="SELECTOR", help="No runners such as spot=yes."),
    click.option(
        "--avoid-type",
        "avoid_types",
        metavar="TYPE",
        multiple=True,
        help="No runner that executes it.",
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
    for name in ("labels", "env", "runner_labels", "annotations", "callback_headers"):
        if name in options:
            options[name] = dict(options[name])
    try:
        _combine(options)
        return _build(words, kinds, interpreter, options)
    except TypeError:
        raise click.UsageError("--workdir goes with a command, a script or an image") from None
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from None


_RETRY = {
    "restart": "restart",
    "backoff": "initial",
    "max_backoff": "max",
    "backoff_factor": "factor",
    "jitter": "jitter",
    "retry_on_timeout": "retry_on_timeout",
    "max_runner_losses": "max_runner_losses",
}


def _combine(options: dict[str, Any]) -> None:
    """Joins the flags that are one option of a builder: of retries, of resources, of what to avoid."""
    retry = {_RETRY[name]: options.pop(name) for name in _RETRY if name in options}
    if retry:
        if "retry" in options:
            retry["max_retries"] = options["retry"]
        options["retry"] = retry
    if "extended" in options:
        options["extended"] = {name: _whole(name, value) for name, value in options["extended"]}
    avoid = {}
    if "avoid" in options:
        avoid["selector"] = options.pop("avoid")
    if "avoid_types" in options:
        avoid["task_types"] = options.pop("avoid_types")
    if avoid:
        options["avoid"] = avoid


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise Invalid(f"--resource {name}={value} is not a whole number") from None


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
