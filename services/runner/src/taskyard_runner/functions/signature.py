"""From type hints to a JSON Schema, and from a payload to a function's arguments."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from taskyard_runner.functions.errors import InvalidPayload

_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_LISTS = (list, Sequence, tuple, set)
_SHOWN = 80


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A field of the payload that the function takes."""

    name: str
    hint: Any
    required: bool


@dataclasses.dataclass(frozen=True)
class Signature:
    """The parameters of a function.

    A function takes its context first, if its first parameter is called `ctx` or `context`. Then it takes
    either the whole payload in one parameter called `payload`, or the fields of a JSON object by name.
    """

    takes_context: bool
    # The hint of the parameter `payload`; None if fields are taken by name.
    whole: Parameter | None
    fields: tuple[Parameter, ...]
    # It has **fields, so that unknown names are welcome.
    open: bool

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the payload; {} where nothing is known."""
        if self.whole is not None:
            return schema_of(self.whole.hint)
        properties = {field.name: schema_of(field.hint) for field in self.fields}
        found: dict[str, Any] = {"type": "object", "properties": properties}
        if required := [field.name for field in self.fields if field.required]:
            found["required"] = required
        if not self.open:
            found["additionalProperties"] = False
        return found

    def bind(self, payload: Any) -> dict[str, Any]:
        """The keyword arguments for a payload. Raises InvalidPayload."""
        if self.whole is not None:
            if payload is None and not self.whole.required:
                return {}
            return {self.whole.name: convert(payload, self.whole.hint, "payload")}
        if payload is None:
            payload = {}
        if not isinstance(payload, Mapping):
            raise InvalidPayload(f"payload {_show(payload)} is no JSON object; send the fields by name")
        by_name = {field.name: field for field in self.fields}
        for name in payload:
            if name not in by_name and not self.open:
                names = ", ".join(by_name) or "none at all"
                raise InvalidPayload(f"payload.{name} is unknown; the function takes {names}")
        for field in self.fields:
            if field.required and field.name not in payload:
                raise InvalidPayload(f"payload.{field.name} is missing; send it")
        return {
            name: convert(value, by_name[name].hint, f"payload.{name}") if name in by_name else value
            for name, value in payload.items()
        }


def read_signature(function: Callable[..., Any]) -> Signature:
    """Raises TypeError for a parameter that no payload can fill."""
    hints = _hints(function)
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and parameters[0].name in ("ctx", "context")
    rest = parameters[1:] if takes_context else parameters
    for parameter in rest:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise TypeError(
                f"parameter {parameter} of {function.__qualname__} has no name that a payload could use"
            )
    named = [
        Parameter(found.name, hints.get(found.name, Any), found.default is found.empty)
        for found in rest
        if found.kind is not found.VAR_KEYWORD
    ]
    open_ended = any(found.kind is found.VAR_KEYWORD for found in rest)
    whole = named[0] if len(named) == 1 and named[0].name == "payload" and not open_ended else None
    return Signature(takes_context, whole, () if whole else tuple(named), open_ended)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        # A hint that only a type checker can read; then anything goes.
        return {}


def schema_of(hint: Any) -> dict[str, Any]:
    """JSON Schema of a type; {} if it has none."""
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if hint is None or hint is type(None):
        return {"type": "null"}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if hint in _LISTS or origin in _LISTS:
        items = schema_of(arguments[0]) if arguments else {}
        return {"type": "array", "items": items} if items else {"type": "array"}
    if hint in (dict, Mapping) or origin in (dict, Mapping):
        values = schema_of(arguments[1]) if len(arguments) == 2 else {}
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _object_schema(hint)
    return {}


def _object_schema(hint: type) -> dict[str, Any]:
    hints = typing.get_type_hints(hint)
    made = [field for field in dataclasses.fields(hint) if field.init]
    required = [field.name for field in made if _is_required(field)]
    found: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: schema_of(hints[field.name]) for field in made},
        "additionalProperties": False,
    }
    if required:
        found["required"] = required
    return found


def convert(value: Any, hint: Any, path: str) -> Any:
    """A JSON value as the type that is hinted at. Raises InvalidPayload where it is none."""
    if hint is Any or hint is object:
        return value
    if hint in _SCALARS:
        return _scalar(value, hint, path)
    if hint is None or hint is type(None):
        return value if value is None else _refuse(value, "null", path)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _any_of(value, arguments, path)
    if origin is Literal:
        return value if value in arguments else _refuse(value, f"one of {list(arguments)}", path)
    if hint in _LISTS or origin in _LISTS:
        return _list(value, origin or hint, arguments, path)
    if hint in (dict, Mapping) or origin in (dict, Mapping):
        if not isinstance(value, dict):
            _refuse(value, "an object", path)
        inner = arguments[1] if len(arguments) == 2 else Any
        return {key: convert(item, inner, f"{path}.{key}") for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        try:
            return hint(value)
        except ValueError:
            return _refuse(value, f"one of {[member.value for member in hint]}", path)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _object(value, hint, path)
    return value


def _scalar(value: Any, hint: Any, path: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    return _refuse(value, f"a {_SCALARS[hint]}" if hint is not int else "an integer", path)


def _any_of(value: Any, hints: tuple[Any, ...], path: str) -> Any:
    problem: InvalidPayload | None = None
    for hint in hints:
        try:
            return convert(value, hint, path)
        except InvalidPayload as error:
            # The error of the first alternative that is not null is the most helpful.
            problem = problem or error
    raise problem or InvalidPayload(f"{path} {_show(value)} fits no type")


def _list(value: Any, kind: Any, arguments: tuple[Any, ...], path: str) -> Any:
    if not isinstance(value, list):
        _refuse(value, "an array", path)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            _refuse(value, f"an array of {len(arguments)} items", path)
        pairs = zip(value, arguments, strict=True)
        return tuple(convert(item, hint, f"{path}[{n}]") for n, (item, hint) in enumerate(pairs))
    inner = arguments[0] if arguments else Any
    made = [convert(item, inner, f"{path}[{n}]") for n, item in enumerate(value)]
    return made if kind in (list, Sequence) else kind(made)


def _object(value: Any, hint: type, path: str) -> Any:
    if not isinstance(value, dict):
        _refuse(value, "an object", path)
    hints = typing.get_type_hints(hint)
    made = {field.name: field for field in dataclasses.fields(hint) if field.init}
    for name in value:
        if name not in made:
            raise InvalidPayload(f"{path}.{name} is unknown; known are {', '.join(made)}")
    for name, field in made.items():
        if name not in value and _is_required(field):
            raise InvalidPayload(f"{path}.{name} is missing; send it")
    return hint(**{name: convert(item, hints[name], f"{path}.{name}") for name, item in value.items()})


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _refuse(value: Any, expected: str, path: str) -> Any:
    raise InvalidPayload(f"{path} {_show(value)} is not {expected}")


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
