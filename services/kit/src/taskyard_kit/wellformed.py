"""Rejects values that decode but that no later step can process, before a handler gets the request.

NaN and infinity are not JSON, PostgreSQL stores no NUL in a text, and Timestamps and Durations outside of
protobuf's range have neither a JSON form nor a value in PostgreSQL. The check is derived from the
descriptors, so it covers every field of every request, also fields that are added later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from taskyard.errors import FieldInvalid, FieldViolation

# The seconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z and of 10,000 years: protobuf's ranges.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
_LONGEST = 315_576_000_000
_BILLION = 1_000_000_000
_MAX_VIOLATIONS = 10
_SHOWN_KEY = 64

# A value that is rejected leaves one of these traces in the encoded message: a NUL; four bytes of a varint
# that continues, as in seconds or nanos that are out of range; the exponent of NaN and infinity. Most
# requests have no trace and are not walked. Larger ones are walked at once: a walk takes about as long as the
# search of 2 KiB, and skips the bytes that make them large.
_TRACE = re.compile(rb"[\x00\x80-\xff](?:(?<=\x00)|[\x80-\xff]{3}|[\x7f\xff])")
_SCANNED_BYTES = 2 * 1024

_Violations = list[FieldViolation]
_Check = Callable[[Any, str, _Violations], None]


def check(message: Message, encoded: bytes | None = None, *, apart_from: str = "") -> None:
    """Raises FieldInvalid that names the fields with such values; `encoded` is the message on the wire.

    The field `apart_from` is left out: its handler checks each item, to reject one without the others.
    """
    if encoded is None and message.ByteSize() <= _SCANNED_BYTES:
        encoded = message.SerializeToString()
    if encoded is not None and len(encoded) <= _SCANNED_BYTES and _TRACE.search(encoded) is None:
        return
    found: _Violations = []
    _check_fields(message, "", found, apart_from)
    if found:
        raise FieldInvalid(tuple(found[:_MAX_VIOLATIONS]))


def _check_message(message: Message, path: str, found: _Violations) -> None:
    _check_fields(message, path + ".", found)


def _check_fields(message: Message, prefix: str, found: _Violations, apart_from: str = "") -> None:
    checks = _checks_of(message.DESCRIPTOR)
    for field, value in message.ListFields():
        checked = checks.get(field.number)
        if checked is not None and field.name != apart_from and len(found) < _MAX_VIOLATIONS:
            checked(value, prefix + field.name, found)


@cache
def _checks_of(descriptor: Descriptor) -> Mapping[int, _Check]:
    """The checks of the fields of a message type, by number; fields that can hold any value have none."""
    made = {field.number: _check_of(field) for field in descriptor.fields}
    return {number: checked for number, checked in made.items() if checked is not None}


def _check_of(field: FieldDescriptor) -> _Check | None:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return _map_check(_single(entry.fields_by_name["key"]), _single(entry.fields_by_name["value"]))
    single = _single(field)
    return _list_check(single) if single is not None and field.is_repeated else single


def _single(field: FieldDescriptor) -> _Check | None:
    if field.type == FieldDescriptor.TYPE_STRING:
        return _check_text
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return _check_number
    if field.message_type is None:
        return None
    return _WELL_KNOWN.get(field.message_type.full_name, _check_message)


def _list_check(single: _Check) -> _Check:
    def checked(items: Any, path: str, found: _Violations) -> None:
        for index, item in enumerate(items):
            single(item, f"{path}[{index}]", found)

    return checked


def _map_check(key_check: _Check | None, value_check: _Check | None) -> _Check | None:
    if key_check is None and value_check is None:
        return None

    def checked(entries: Any, path: str, found: _Violations) -> None:
        for key in entries:
            place = f'{path}["{_shown(key)}"]'
            if key_check is not None:
                key_check(key, place, found)
            if value_check is not None:
                value_check(entries[key], place, found)

    return checked


def _check_text(value: str, path: str, found: _Violations) -> None:
    if "\0" in value:
        at = value.index("\0")
        found.append(
            FieldViolation(path, f"must not contain NUL, which is its character {at}; remove it", "no_nul")
        )


def _check_number(value: float, path: str, found: _Violations) -> None:
    if not math.isfinite(value):
        found.append(
            FieldViolation(path, f"must be a finite number, not {value}; leave it out or use null", "finite")
        )


def _check_timestamp(value: Any, path: str, found: _Violations) -> None:
    if not (_FIRST_SECOND <= value.seconds <= _LAST_SECOND and 0 <= value.nanos < _BILLION):
        problem = "must be a time between the years 1 and 9999 with nanos from 0 to 999,999,999"
        found.append(FieldViolation(path, f"{problem}, not {_parts(value)}", "timestamp"))


def _check_duration(value: Any, path: str, found: _Violations) -> None:
    seconds, nanos = value.seconds, value.nanos
    if not (-_LONGEST <= seconds <= _LONGEST and -_BILLION < nanos < _BILLION and seconds * nanos >= 0):
        problem = f"must be at most {_LONGEST} s with fewer than {_BILLION} nanos of the same sign"
        found.append(FieldViolation(path, f"{problem}, not {_parts(value)}", "duration"))


def _parts(value: Any) -> str:
    return f"{value.seconds} s and {value.nanos} ns"


def _check_value(value: Any, path: str, found: _Violations) -> None:
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        _check_number(value.number_value, path, found)
    elif kind == "string_value":
        _check_text(value.string_value, path, found)
    elif kind == "struct_value":
        _check_struct(value.struct_value, path, found)
    elif kind == "list_value":
        _check_list(value.list_value, path, found)


def _check_struct(value: Any, path: str, found: _Violations) -> None:
    # Protobuf decodes at most 100 levels, which bounds the recursion.
    for key, item in value.fields.items():
        place = f"{path}.{_shown(key)}"
        _check_text(key, place, found)
        _check_value(item, place, found)


def _check_list(value: Any, path: str, found: _Violations) -> None:
    for index, item in enumerate(value.values):
        _check_value(item, f"{path}[{index}]", found)


def _shown(key: Any) -> str:
    # A gRPC message cannot contain NUL.
    return str(key)[:_SHOWN_KEY].replace("\0", "NUL")


_WELL_KNOWN: Mapping[str, _Check] = {
    "google.protobuf.Timestamp": _check_timestamp,
    "google.protobuf.Duration": _check_duration,
    "google.protobuf.Struct": _check_struct,
    "google.protobuf.Value": _check_value,
    "google.protobuf.ListValue": _check_list,
}
