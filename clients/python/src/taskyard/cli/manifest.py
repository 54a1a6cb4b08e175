"""Tasks, schedules, task types and tenants as files describe them."""

from __future__ import annotations

import contextlib
import json
import re
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
from taskyard.cli.selector_text import parse_selector
from taskyard.cli.values import AFTER, DURATION
from taskyard.new_task import After, Constraint, Expression, LimitUse, NewTask, Preference, Retry, Selector
from taskyard.v1 import limit_pb2, schedule_pb2, task_pb2, task_type_pb2, tenant_pb2
from taskyard.words import Invalid

KINDS = ("Tenant", "TaskType", "Limit", "Schedule", "Task")


@dataclass(frozen=True)
class Resource:
    """One resource of a file: its kind, its id, and its fields."""

    kind: str
    id: str
    message: Any
    """A Tenant, a TaskType, a Limit, a Schedule or a NewTask."""
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
    if kind == "Schedule":
        return Resource(kind, id_, _schedule(document, value), document)
    made = {"Tenant": tenant_pb2.Tenant, "TaskType": task_type_pb2.TaskType, "Limit": limit_pb2.Limit}
    message: Any = made[kind]()
    fill(message, value, document, ())
    return Resource(kind, id_, message, document)


def _schedule(document: Document, value: dict[str, Any]) -> schedule_pb2.Schedule:
    """A schedule: its fields, and its task with the names of the command line's options."""
    if "task" not in value:
        raise document.error((), "task is missing: what the schedule creates")
    task = value.pop("task")
    places = {path[1:]: place for path, place in document.places.items() if path[:1] == ("task",)}
    inner = Document(document.file, task, places)
    if "template" in value:
        raise document.error(("template",), "describe the task in `task`, as in `kind: Task`")
    if isinstance(value.get("cron"), str):
        value["cron"] = [value["cron"]]
    message = schedule_pb2.Schedule()
    fill(message, value, document, ())
    made = new_task_of_document(inner, _mapping(inner)).request
    if made.task_id or made.request_id:
        raise document.error(("task",), "the task of a schedule has no id and no request_id of its own")
    message.template.metadata.CopyFrom(made.task.metadata)
    message.template.spec.CopyFrom(made.task.spec)
    return message


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
    fields = {_snake(str(name)): inner for name, inner in value.items() if name != "kind"}
    for name in fields:
        if name not in _FIELDS:
            raise document.unknown((_written(document, name),), sorted(_FIELDS))
    options = {}
    for name, inner in fields.items():
        take = _FIELDS[name]
        if take is not None:
            options[_OPTION.get(name, name)] = take(document, (_written(document, name),), inner)
    _join_retry(document, options)
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


def _snake(name: str) -> str:
    """A name as it is spelled here: queue-timeout and queueTimeout are queue_timeout."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace("-", "_")


def _written(document: Document, name: str) -> str:
    """A name as the document spells it."""
    tops = (str(place[0]) for place in document.places if len(place) == 1)
    return next((top for top in tops if _snake(top) == name), name)


def _join_retry(document: Document, options: dict[str, Any]) -> None:
    """Makes one retry policy of `retry`, `restart` and `backoff`, which may be given beside each other."""
    parts = {name: options.pop(name) for name in ("restart", "backoff") if name in options}
    if not parts:
        return
    retry = options.get("retry", {})
    retry = {"max_retries": retry} if isinstance(retry, int) else dict(retry)
    if "restart" in parts:
        retry["restart"] = parts["restart"]
    options["retry"] = retry | parts.get("backoff", {})


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
        below, known = (*path, str(name)), _RETRY.get(_snake(str(name)), _snake(str(name)))
        if known == "backoff":
            retry |= cast("dict[str, Any]", _retry(document, below, inner))
        elif known not in Retry.__annotations__:
            raise document.unknown(below, sorted(Retry.__annotations__))
        elif _snake(str(name)).endswith("_ms"):
            retry[known] = _number(document, below, inner) / 1000
        else:
            retry[known] = _seconds(document, below, inner) if known in ("initial", "max") else inner
    return cast("Retry", retry)


def _entity(document: Document, path: Path, value: Any) -> tuple[str, str]:
    if isinstance(value, dict) and value.keys() == {"type", "id"}:
        return str(value["type"]), str(value["id"])
    kind, slash, id_ = _text(document, path, value).partition("/")
    if not (kind and slash and id_):
        raise document.error(path, f"{value!r} is not an entity such as planner/p1, or {{type: …, id: …}}")
    return kind, id_


def _selector(document: Document, path: Path, value: Any) -> Selector:
    if isinstance(value, str):
        try:
            return parse_selector(value)
        except Invalid as error:
            raise document.error(path, str(error)) from None
    found = _renamed(document, path, value, Selector)
    expressions = found.get("match_expressions", [])
    if not isinstance(expressions, list):
        raise document.error((*path, "match_expressions"), f"{expressions!r} must be a list")
    found["match_expressions"] = [_renamed(document, path, one, Expression) for one in expressions]
    return cast("Selector", found)


def _constraint(document: Document, path: Path, value: Any) -> Constraint:
    if isinstance(value, str):
        return {"selector": _selector(document, path, value)}
    found = _renamed(document, path, value, Preference)
    if "selector" in found:
        found["selector"] = _selector(document, (*path, "selector"), found["selector"])
    return cast("Constraint", found)


def _preferences(document: Document, path: Path, value: Any) -> list[Preference]:
    if not isinstance(value, list):
        raise document.error(path, f"{value!r} must be a list")
    return [cast("Preference", _constraint(document, (*path, n), one)) for n, one in enumerate(value)]


def _renamed(document: Document, path: Path, value: Any, kind: Any) -> dict[str, Any]:
    """A mapping with the names that a TypedDict has."""
    if not isinstance(value, dict):
        raise document.error(path, f"{value!r} must be a mapping with {', '.join(kind.__annotations__)}")
    found = {}
    for name, inner in value.items():
        if _snake(str(name)) not in kind.__annotations__:
            raise document.unknown((*path, str(name)), sorted(kind.__annotations__))
        found[_snake(str(name))] = inner
    return found


def _counts(document: Document, path: Path, value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise document.error(path, f"{value!r} must be a mapping of names to whole numbers")
    return {str(name): _whole(document, (*path, str(name)), one) for name, one in value.items()}


def _after(document: Document, path: Path, value: Any) -> list[After]:
    found: list[After] = []
    for index, one in enumerate(value if isinstance(value, list) else [value]):
        place = (*path, index) if isinstance(value, list) else path
        try:
            if isinstance(one, dict):
                fields = {
                    str(name): _text(document, (*place, str(name)), inner) for name, inner in one.items()
                }
                if unknown := fields.keys() - {"task", "group", "alias", "when"}:
                    raise document.unknown((*place, min(unknown)), ["task", "group", "alias", "when"])
                if "group" in fields:
                    fields["task"] = f"groups/{fields.pop('group')}"
                found.append(After(**cast("Any", fields)))
            else:
                found += AFTER.convert(_text(document, place, one), None, None)
        except click.UsageError as error:
            raise document.error(place, error.message) from None
        except TypeError:
            raise document.error(place, "task or group is missing") from None
    return found


def _limits(document: Document, path: Path, value: Any) -> list[LimitUse]:
    found: list[LimitUse] = []
    for index, one in enumerate(value if isinstance(value, list) else [value]):
        place = (*path, index) if isinstance(value, list) else path
        try:
            found.append(LimitUse.parse(_text(document, place, one)))
        except YamlError:
            raise
        except ValueError as error:
            raise document.error(place, str(error)) from None
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
    "limits": _limits,
    "retries": _retry,
    "retry": _retry,
    "timeout": _seconds,
    "queue_timeout": _seconds,
    "total_timeout": _seconds,
    "silence_timeout": _seconds,
    "stop_grace_period": _seconds,
    "retention": _seconds,
    "not_before": _time,
    "checkpoint_interval": _seconds,
    "orphan_timeout": _seconds,
    "max_steps": _whole,
    "restart": _text,
    "backoff": _retry,
    "slot": _text,
    "entity": _entity,
    "parent_task": _text,
    "group": _text,
    "after": _after,
    "admission": _text,
    "overlap": _text,
    "on_runner_lost": _text,
    "cpu": _number,
    "memory": _whole,
    "disk": _whole,
    "extended": _counts,
    "runner_labels": _pairs,
    "runner_ids": _texts,
    "tags": _texts,
    "selector": _selector,
    "runner_selector": _selector,
    "prefer": _preferences,
    "avoid": _constraint,
    "callback": _text,
    "callback_headers": _pairs,
    "report_timeout": _seconds,
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
    "runner_selector": "selector",
}
_RETRY = {"first": "initial", "first_ms": "initial", "max_ms": "max"}
