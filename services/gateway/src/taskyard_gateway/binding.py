"""Requests made of path, query and body, as the http rule of the RPC says."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from taskyard.errors import FieldInvalid
from taskyard_gateway.contract import RESUME_TOKEN, Rpc, is_map, is_repeated
from taskyard_gateway.routes import WHOLE_BODY, Match, Route

MAX_QUERY_PARAMETERS = 2000
# Messages that are a string in JSON, and so can be a parameter.
_TEXTUAL = frozenset({"Timestamp", "Duration", "FieldMask", "StringValue", "BytesValue"})
_NUMERIC = frozenset({"Int32Value", "UInt32Value", "Int64Value", "UInt64Value", "FloatValue", "DoubleValue"})
_BOOLEAN = {"true": True, "false": False}
# All that protobuf's reader of JSON raises for what is no message: most, but not all, as its ParseError.
_UNREADABLE = (json_format.ParseError, ValueError, TypeError, OverflowError, RecursionError, AttributeError)


def bind(match: Match, query: bytes, body: bytes) -> Message:
    """The request of a call by its rule. Raises FieldInvalid that names the member or parameter."""
    route = match.route
    request = route.rpc.request()
    if route.body == WHOLE_BODY:
        read_json(body, request)
    elif route.body and body:
        part = getattr(request, route.body)
        part.SetInParent()
        read_json(body, part)
    elif body:
        raise FieldInvalid.of("body", f"{route.method} {route.template.text} takes none")
    if query:
        _read_query(_parameters(query), request, route)
    for path, value in route.template.bind(match.segments):
        _set(request, path, value)
    return request


def read_json(body: bytes, message: Message) -> None:
    """Fill a message from JSON; an empty body is an empty message. Raises FieldInvalid."""
    if not body:
        return
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise FieldInvalid.of("body", f"is not UTF-8: byte {error.start}") from None
    try:
        json_format.Parse(text, message)
    except _UNREADABLE as error:
        raise FieldInvalid.of(
            "body", f"is not {message.DESCRIPTOR.full_name} in JSON: {_line(error)}"
        ) from None


def resume(rpc: Rpc, request: Message, token: str) -> None:
    """Let a stream go on after the event that the client has seen last."""
    if token and rpc.resumable:
        setattr(request, RESUME_TOKEN, token)
        # The state that a snapshot begins with has been sent before the token.
        if "snapshot" in request.DESCRIPTOR.fields_by_name:
            request.ClearField("snapshot")


def _parameters(query: bytes) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    parts = [part for part in query.replace(b"+", b" ").split(b"&") if part]
    if len(parts) > MAX_QUERY_PARAMETERS:
        raise FieldInvalid.of("query", f"{len(parts)} query parameters; at most {MAX_QUERY_PARAMETERS}")
    try:
        for part in parts:
            name, _, value = part.partition(b"=")
            decoded = unquote_to_bytes(value).decode()
            found.setdefault(unquote_to_bytes(name).decode(), []).append(decoded)
    except UnicodeDecodeError:
        raise FieldInvalid.of("query", "has bytes that are not UTF-8") from None
    return found


def _read_query(parameters: dict[str, list[str]], request: Message, route: Route) -> None:
    members: dict[str, Any] = {}
    in_path = {variable.field for variable in route.template.variables}
    for name, values in parameters.items():
        path = _fields(request.DESCRIPTOR, name)
        if ".".join(field.name for field in path) in in_path:
            raise FieldInvalid.of(name[:128], "is a part of the path, and cannot be a parameter as well")
        if route.body in (WHOLE_BODY, path[0].name):
            raise FieldInvalid.of(name[:128], "is no parameter of this call; it belongs into the body")
        inner = members
        for field in path[:-1]:
            inner = inner.setdefault(field.name, {})
        inner[path[-1].name] = _value(path[-1], name, values)
    try:
        json_format.ParseDict(members, request)
    except _UNREADABLE as error:
        raise FieldInvalid.of("", f"the query does not fit {request.DESCRIPTOR.full_name}: {error}") from None


def _fields(descriptor: Any, name: str) -> list[FieldDescriptor]:
    """The fields that a dotted name leads through, by their names in the proto or in JSON."""
    path: list[FieldDescriptor] = []
    inside: Any = descriptor
    for part in name.split("."):
        field = None if inside is None else _field(inside, part)
        if field is None or (path and is_repeated(path[-1])):
            raise FieldInvalid.of(name[:128], "is not a parameter of this call")
        path.append(field)
        inside = field.message_type
    return path


def _field(descriptor: Any, name: str) -> FieldDescriptor | None:
    found: FieldDescriptor | None = descriptor.fields_by_name.get(name)
    return found or descriptor.fields_by_camelcase_name.get(name)


def _value(field: FieldDescriptor, name: str, values: list[str]) -> Any:
    if is_map(field) or (field.message_type is not None and not _is_simple(field.message_type)):
        raise FieldInvalid.of(name[:128], "is a message; give its members, as in a.b=1, or call with a body")
    if is_repeated(field):
        return [_scalar(field, name, value) for value in values]
    if len(values) > 1:
        raise FieldInvalid.of(name[:128], f"is given {len(values)} times; it takes one value")
    return _scalar(field, name, values[0])


def _is_simple(descriptor: Descriptor) -> bool:
    well_known = descriptor.file.package == "google.protobuf"
    return well_known and descriptor.name in _TEXTUAL | _NUMERIC | {"BoolValue"}


def _scalar(field: FieldDescriptor, name: str, value: str) -> Any:
    wrapped = field.message_type.name if field.message_type is not None else ""
    if field.type == FieldDescriptor.TYPE_BOOL or wrapped == "BoolValue":
        if value not in _BOOLEAN:
            raise FieldInvalid.of(name[:128], f"must be true or false, not {value[:64]!r}")
        return _BOOLEAN[value]
    return value


def _set(request: Message, path: str, value: str) -> None:
    *outer, last = path.split(".")
    message: Any = request
    for part in outer:
        message = getattr(message, part)
    try:
        setattr(message, last, value)
    except ValueError as error:
        raise FieldInvalid.of(path, str(error)) from None


def _line(error: Exception) -> str:
    """The first sentence of an error; the rest lists what protobuf would have taken."""
    return str(error).partition("\n")[0]
