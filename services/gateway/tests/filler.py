"""Messages with every field filled in, and requests taken apart again as their http rule says."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import quote, urlencode

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from taskyard_gateway.contract import is_map, is_repeated
from taskyard_gateway.routes import WHOLE_BODY, Route
from taskyard_gateway.template import WILDCARD

_DEPTH = 4
_F = FieldDescriptor
_TEXT = "ä x/&=%+?#\"'"
_NUMBERS: dict[int, Any] = {
    _F.TYPE_DOUBLE: 1.5,
    _F.TYPE_FLOAT: 0.25,
    _F.TYPE_BOOL: True,
    _F.TYPE_STRING: _TEXT,
    _F.TYPE_BYTES: b"\x00\xff\xfe bytes",
}


def fill(message: Any, choice: int, depth: int = 0) -> Message:
    """Every field, of each oneof the member that `choice` picks; the deepest messages stay empty."""
    name = message.DESCRIPTOR.full_name
    if name.startswith("google.protobuf.") and _fill_well_known(message, name):
        return message  # type: ignore[no-any-return]
    left_out = {
        member.name
        for oneof in message.DESCRIPTOR.oneofs
        for place, member in enumerate(oneof.fields)
        if place != choice % len(oneof.fields)
    }
    for field in message.DESCRIPTOR.fields:
        if field.name not in left_out:
            _fill_field(message, field, choice, depth)
    return message  # type: ignore[no-any-return]


def _fill_well_known(message: Any, name: str) -> bool:
    match name.rpartition(".")[2]:
        case "Struct":
            message.update({"text": _TEXT, "number": 7, "list": [1.5, None, True], "inner": {"x": {}}})
        case "Value":
            message.string_value = _TEXT
        case "ListValue":
            message.extend([1, "two"])
        case "FieldMask":
            message.paths.extend(["spec.task_type", "metadata.labels"])
        case "Timestamp":
            message.FromJsonString("2026-11-17T22:36:48.272544Z")
        case "Duration":
            message.FromJsonString("90.250s")
        case "Any":
            from google.rpc.error_details_pb2 import ErrorInfo

            message.Pack(ErrorInfo(reason="REASON", domain="d"))
        case _:
            return False
    return True


def _fill_field(message: Any, field: Any, choice: int, depth: int) -> None:
    if is_map(field):
        key = "key" if field.message_type.fields_by_name["key"].type == _F.TYPE_STRING else 1
        value = field.message_type.fields_by_name["value"]
        if value.message_type is not None:
            fill(getattr(message, field.name)[key], choice, depth + 1)
        else:
            getattr(message, field.name)[key] = _scalar(value)
    elif field.message_type is not None:
        if depth >= _DEPTH:
            return
        made = getattr(message, field.name)
        for part in (made.add(), made.add()) if is_repeated(field) else (made,):
            part.SetInParent()
            fill(part, choice, depth + 1)
    elif is_repeated(field):
        getattr(message, field.name).extend([_scalar(field), _scalar(field)])
    else:
        setattr(message, field.name, _scalar(field))


def _scalar(field: Any) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values[-1].number
    return _NUMBERS.get(field.type, 42)


def take_apart(route: Route, request: Message) -> tuple[str, bytes | None]:
    """The path with its query, and the body, of a request; what has no place is cleared in it."""
    segments = list(route.template.segments)
    for variable in route.template.variables:
        pattern = segments[variable.start : variable.end]
        parts = [f"id.{place}-_X" if part == WILDCARD else part for place, part in enumerate(pattern)]
        segments[variable.start : variable.end] = parts
        _set(request, variable.field, "/".join(parts))
    verb = f":{route.template.verb}" if route.template.verb else ""
    path = "/" + "/".join(quote(part, safe="") for part in segments) + verb
    bound = {variable.field for variable in route.template.variables}
    if route.body == WHOLE_BODY:
        members = json_format.MessageToDict(request)
        for name in bound:
            members.pop(request.DESCRIPTOR.fields_by_name[name].json_name)
        return path, json.dumps(members).encode()
    body = None
    if route.body:
        getattr(request, route.body).SetInParent()
        body = json_format.MessageToJson(getattr(request, route.body)).encode()
    query = urlencode(list(_query(request, request, bound, route.body)))
    return (f"{path}?{query}" if query else path), body


def _query(
    root: Message, message: Any, bound: Collection[str], body: str, above: str = ""
) -> Iterator[tuple[str, str]]:
    for field, value in list(message.ListFields()):
        dotted = above + field.name
        if dotted in bound or (not above and field.name == body):
            continue
        if is_map(field) or (field.message_type is not None and (is_repeated(field) or _is_open(field))):
            # There is no such parameter: a request that has it is sent with a body.
            message.ClearField(field.name)
        elif field.message_type is not None and not field.message_type.full_name.startswith(
            "google.protobuf."
        ):
            yield from _query(root, value, bound, body, f"{dotted}.")
        else:
            shown = json_format.MessageToDict(message)[field.json_name]
            for each in shown if isinstance(shown, list) else [shown]:
                yield dotted, json.dumps(each) if isinstance(each, bool) else str(each)


def _is_open(field: Any) -> bool:
    return field.message_type.name in ("Struct", "Value", "ListValue", "Any")


def _set(message: Any, path: str, value: str) -> None:
    *outer, last = path.split(".")
    for part in outer:
        message = getattr(message, part)
    setattr(message, last, value)
