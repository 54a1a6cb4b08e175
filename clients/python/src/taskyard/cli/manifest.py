"""Tasks, task types and tenants as files describe them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any, cast

import click

from taskyard import script
from taskyard.builders import command, container, external, function, typed, wasm
from taskyard.cli.marked_yaml import Document, Path, YamlError, documents
from taskyard.cli.proto_values import fill
from taskyard.cli.values import AFTER, DURATION
from taskyard.new_task import After, NewTask, Retry
from taskyard.v1 import task_pb2, task_type_pb2, tenant_pb2

KINDS = ("Tenant", "TaskType", "Task")


@dataclass(frozen=True)
class Resource:
    """One resource of a file: its kind, its id, and its fields."""

    kind: str
    id: str
    message: Any
    """A Tenant, a TaskType or a NewTask."""
    document: Document


def resources(text: str, file: str) -> Iterator[Resource]:
    """The resources of a YAML text; raises YamlError at the first mistake."""
    for document in documents(text, file):
        yield _resource(document)


def _resource(document: Document) -> Resource:
    value = _mapping(document)
    kind = value.pop("kind", None)
    if kind not in KINDS:
        problem = (
            f"{kind!r} is not one of {', '.join(KINDS)}"
            if kind
            else f"kind is missing; use {', '.join(KINDS)}"
        )
        raise document.error(("kind",), problem)
    if kind == "Task":
        return Resource(kind, str(value.get("id", "")), new_task_of_document(document, value), document)
    id_ = value.pop("id", None)
    if not isinstance(id_, str) or not id_:
        raise document.error(("id",), "id is missing or not a text")
    message: Any = tenant_pb2.Tenant() if kind == "Tenant" else task_type_pb2.TaskType()
    fill(message, value, document, ())
    return Resource(kind, id_, message, document)


def _mapping(document: Document) -> dict[str, Any]:
    if not isinstance(document.value, dict):
        raise document.error((), f"a mapping is expected here, not {type(document.value).__name__}")
    return dict(document.value)


def json_lines(lines: Iterator[str], file: str) -> Iterator[NewTask]:
    """The tasks of a file with one JSON object per line; raises YamlError at the first mistake."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise YamlError(f"{file}:{number}:{error.colno}: {error.msg}") from None
        document = Document(file, value, {(): (number, 1)})
        yield new_task_of_document(document, _mapping(document))


def new_tasks(text: str, file: str) -> Iterator[NewTask]:
    """The tasks of a YAML file that contains only tasks; raises YamlError at the first mistake."""
    for document in documents(text, file):
        value = _mapping(document)
        if value.get("kind", "Task") != "Task":
            raise document.error(
                ("kind",), f"only tasks can be submitted; `taskyard apply` takes {value['kind']}"
            )
        yield new_task_of_document(document, value)


def new_task_of_document(document: Document, value: Mapping[str, Any]) -> NewTask:
    """The task that a mapping describes, with the names of the command line's options; raises YamlError."""
    fields = {str(name).replace("-", "_"): inner for name, inner in value.items() if name != "kind"}
    for name in fields:
        if name not in _FIELDS:
            raise document.unknown((_written(document, name),), sorted(_FIELDS))
    options = {}
    for name, inner in fields.items():
        take = _FIELDS[name]
        if take is not None:
            options[_OPTION.get(name, name)] = take(document, (_written(document, name),), inner)
    try:
        new = _built(document, fields, options)
    except (TypeError, ValueError) as error:
        if isinstance(error, YamlError):
            raise
        raise document.error((), str(error)) from None
    if "spec" in fields:
        spec = task_pb2.TaskSpec()
        fill(spec, fields["spec"], document, ("spec",))
        new.request.task.spec.MergeFrom(spec)
    return new


def _written(document: Document, name: str) -> str:
    return name if (name,) in document.places else name.replace("_", "-")


def _built(document: Document, fields: Mapping[str, Any], options: dict[str, Any]) -> NewTask:
    kinds = [name for name in _EXECUTIONS if name in fields]
    if len(kinds) > 1:
        raise document.error((kinds[1],), f"{kinds[0]} and {kinds[1]} exclude each other")
    args = _texts(document, ("args",), fields.get("args", []))
    if fields.get("interpreter") and kinds != ["script"]:
        raise document.error(("interpreter",), "interpreter needs script")
    match kinds:
        case ["command"]:
            words = fields["command"]
            words = [words] if isinstance(words, str) else _texts(document, ("command",), words)
            if not words:
                raise document.error(("command",), "command is empty")
            return command(words[0], *words[1:], *args, **options)
        case ["script"]:
            return _script(_text(document, ("script",), fields["script"]), fields, args, options)
        case ["function"]:
            return function(
                _text(document, ("function",), fields["function"]), options.pop("payload", None), **options
            )
        case ["image"]:
            return container(_text(document, ("image",), fields["image"]), *args, **options)
        case ["wasm"]:
            return wasm(FilePath(_text(document, ("wasm",), fields["wasm"])), *args, **options)
        case ["external"]:
            return external(**options)
    if "task_type" in options:
        return typed(options.pop("task_type"), options.pop("payload", None), **options)
    if "spec" in fields:
        return typed("", options.pop("payload", None), **options)
    raise document.error((), f"nothing to run; use {', '.join(_EXECUTIONS)} or type")


def _script(body: str, fields: Mapping[str, Any], args: list[str], options: dict[str, Any]) -> NewTask:
    interpreter = str(fields.get("interpreter", "bash"))
    if interpreter in ("bash", "python", "node"):
        make: Callable[..., NewTask] = getattr(script, interpreter)
        return make(body, *args, **options)
    return script.custom(interpreter, body, *args, **options)


def _text(document: Document, path: Path, value: Any) -> str:
    if isinstance(value, bool | dict | list) or value is None:
        raise document.error(path, f"{json.dumps(value)} must be a text; put it in quotes")
    return str(value)


def _texts(document: Document, path: Path, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise document.error(path, f"{value!r} must be a list")
    return [_text(document, (*path, index), one) for index, one in enumerate(value)]


def _pairs(document: Document, path: Path, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise document.error(path, f"{value!r} must be a mapping of names to values")
    return {str(name): _text(document, (*path, str(name)), one) for name, one in value.items()}


def _seconds(document: Document, path: Path, value: Any) -> float:
    try:
        return DURATION.convert(value if isinstance(value, int | float) else str(value), None, None)
    except click.UsageError as error:
        raise document.error(path, error.message) from None


def _whole(document: Document, path: Path, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise document.error(path, f"{value!r} must be a whole number")
    return value


def _number(document: Document, path: Path, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise document.error(path, f"{value!r} must be a number")
    return float(value)


def _time(document: Document, path: Path, value: Any) -> datetime:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        raise document.error(path, f"{value!r} is not a time such as 2026-01-31T12:00:00Z")
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _retry(document: Document, path: Path, value: Any) -> Retry | int:
    if not isinstance(value, dict):
        return _whole(document, path, value)
    retry: dict[str, Any] = {}
    for name, inner in value.items():
        if name not in Retry.__annotations__:
            raise document.unknown((*path, str(name)), sorted(Retry.__annotations__))
        retry[name] = _seconds(document, (*path, name), inner) if name in ("initial", "max") else inner
    return cast("Retry", retry)


def _after(document: Document, path: Path, value: Any) -> list[After]:
    found: list[After] = []
    for index, one in enumerate(value if isinstance(value, list) else [value]):
        place = (*path, index) if isinstance(value, list) else path
        try:
            if isinstance(one, dict):
                fields = {
                    str(name): _text(document, (*place, str(name)), inner) for name, inner in one.items()
                }
                if unknown := fields.keys() - {"task", "alias", "when"}:
                    raise document.unknown((*place, min(unknown)), ["task", "alias", "when"])
                found.append(After(**cast("Any", fields)))
            else:
                found += AFTER.convert(_text(document, place, one), None, None)
        except click.UsageError as error:
            raise document.error(place, error.message) from None
        except TypeError:
            raise document.error(place, "task is missing") from None
    return found


def _any(document: Document, path: Path, value: Any) -> Any:
    return value


# None marks the fields that _built reads.
_FIELDS: Mapping[str, Callable[[Document, Path, Any], Any] | None] = {
    "id": _text,
    "request_id": _text,
    "labels": _pairs,
    "annotations": _any,
    "env": _pairs,
    "workdir": _text,
    "type": _text,
    "payload": _any,
    "priority": _whole,
    "retries": _retry,
    "retry": _retry,
    "timeout": _seconds,
    "queue_timeout": _seconds,
    "total_timeout": _seconds,
    "silence_timeout": _seconds,
    "stop_grace_period": _seconds,
    "retention": _seconds,
    "not_before": _time,
    "slot": _text,
    "after": _after,
    "admission": _text,
    "overlap": _text,
    "on_runner_lost": _text,
    "cpu": _number,
    "memory": _whole,
    "disk": _whole,
    "runner_labels": _pairs,
    "callback": _text,
    "command": None,
    "script": None,
    "interpreter": None,
    "function": None,
    "image": None,
    "wasm": None,
    "external": None,
    "args": None,
    "spec": None,
}
_EXECUTIONS = ("command", "script", "function", "image", "wasm", "external")
_OPTION = {
    "workdir": "working_directory",
    "type": "task_type",
    "retries": "retry",
    "memory": "memory_mb",
    "disk": "disk_mb",
}
