"""Proto messages as people write them in YAML: short enum names, durations like 5m, documents as they are."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import click
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from taskyard.cli.marked_yaml import Document, Path
from taskyard.cli.values import DURATION

_DURATION = "google.protobuf.Duration"
_TIMESTAMP = "google.protobuf.Timestamp"
_FREE = ("google.protobuf.Struct", "google.protobuf.Value")
_PAYLOAD = "taskyard.v1.Payload"


def fill(message: Any, value: Any, document: Document, path: Path) -> None:
    """Copies a value of a document into a message; raises YamlError if a field does not match."""
    try:
        ParseDict(_message(message.DESCRIPTOR, value, document, path), message)
    except ParseError as error:
        raise document.error(path, " ".join(str(error).split())) from None


def _message(kind: Descriptor, value: Any, document: Document, path: Path) -> Any:
    """The JSON form that protobuf expects."""
    if kind.full_name == _DURATION:
        return _duration(value, document, path)
    if kind.full_name == _TIMESTAMP:
        return _timestamp(value, document, path)
    if kind.full_name in _FREE:
        return value
    if kind.full_name == _PAYLOAD and not _is_payload(value):
        return {"raw": _base64(json.dumps(value, ensure_ascii=False)), "contentType": "application/json"}
    if not isinstance(value, dict):
        raise document.error(path, f"{value!r} must be a mapping with {', '.join(kind.fields_by_name)}")
    fields = {**kind.fields_by_camelcase_name, **kind.fields_by_name}
    filled = {}
    for name, inner in value.items():
        below = (*path, str(name))
        if name not in fields:
            raise document.unknown(below, list(kind.fields_by_name))
        filled[fields[name].name] = _field(fields[name], inner, document, below)
    return filled


def _field(field: FieldDescriptor, value: Any, document: Document, path: Path) -> Any:
    if _is_map(field):
        if not isinstance(value, dict):
            raise document.error(path, f"{value!r} must be a mapping of names to values")
        assert field.message_type is not None
        inner = field.message_type.fields_by_name["value"]
        return {str(key): _single(inner, one, document, (*path, str(key))) for key, one in value.items()}
    if field.is_repeated:
        if not isinstance(value, list):
            raise document.error(path, f"{value!r} must be a list")
        return [_single(field, one, document, (*path, index)) for index, one in enumerate(value)]
    return _single(field, value, document, path)


def _single(field: FieldDescriptor, value: Any, document: Document, path: Path) -> Any:
    if field.message_type is not None:
        return _message(field.message_type, value, document, path)
    if field.enum_type is not None:
        return _enum(field.enum_type, value, document, path)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _base64(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if field.type == FieldDescriptor.TYPE_STRING:
        if isinstance(value, bool | dict | list) or value is None:
            raise document.error(path, f"{json.dumps(value)} must be a text; put it in quotes")
        return str(value)
    if field.type == FieldDescriptor.TYPE_BOOL and not isinstance(value, bool):
        raise document.error(path, f"{value!r} must be true or false")
    if field.type != FieldDescriptor.TYPE_BOOL and not isinstance(value, int | float):
        raise document.error(path, f"{value!r} must be a number")
    return value


def _enum(kind: EnumDescriptor, value: Any, document: Document, path: Path) -> str:
    """The full name of a value given in short or in full, in any case, with or without its underscores."""
    prefix = common_prefix(kind)
    names = {name.removeprefix(prefix): name for name in kind.values_by_name}
    plain = {_letters(name): name for name in names}
    word = plain.get(_letters(str(value).upper().replace("-", "_").removeprefix(prefix)), "")
    if word not in names or word == "UNSPECIFIED":
        words = ", ".join(name.lower() for name in names if name != "UNSPECIFIED")
        raise document.error(path, f"{value!r} is not one of {words}")
    return names[word]


def _letters(word: str) -> str:
    """A word without what its spellings differ in: DropIfRunning and drop_if_running are one."""
    return word.upper().replace("_", "")


def common_prefix(kind: EnumDescriptor) -> str:
    """What every value of an enum begins with, such as TENANT_TIER_."""
    return kind.values_by_number[0].name.removesuffix("UNSPECIFIED")


def _duration(value: Any, document: Document, path: Path) -> str:
    try:
        return f"{DURATION.convert(value if isinstance(value, int | float) else str(value), None, None):f}s"
    except click.UsageError as error:
        raise document.error(path, error.message) from None


def _timestamp(value: Any, document: Document, path: Path) -> str:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise document.error(path, f"{value!r} is not a time such as 2026-01-31T12:00:00Z") from None
    if not isinstance(value, datetime):
        raise document.error(path, f"{value!r} is not a time such as 2026-01-31T12:00:00Z")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _is_payload(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= {"json", "raw", "content_type", "contentType"}
        and bool(value)
    )


def _base64(text: str) -> str:
    from base64 import b64encode

    return b64encode(text.encode()).decode()


def plain(message: Message) -> Any:
    """A message as plain values without unset fields."""
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message, preserving_proto_field_name=True)
