"""Random messages made from descriptors: extremes of every type, and mutated valid messages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

_INTEGERS = (
    0,
    1,
    -1,
    2,
    100,
    1001,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
)
_NUMBERS = (0.0, 1.0, -1.0, 1.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"))
_SECONDS = (0, 1, -1, 60, 86400, 2**31, 253_402_300_799, 253_402_300_800, -62_135_596_800, -62_135_596_801)
_LONG_SECONDS = (99_999_999_999, 315_576_000_000, 315_576_000_001, 2**62, -(2**62), 2**63 - 1, -(2**63))
_NANOS = (0, 0, 0, 1, 999, 1_000_000, 999_999_999, 10**9, -1, 2**31 - 1, -(2**31))
_TEXTS = (
    *(
        "",
        "a",
        "-",
        ".",
        "..",
        "*",
        "a\0b",
        "\0",
        " ",
        "é\U0001f600",
        "\u202e",
        "x" * 65,
        "x" * 300,
        "x" * 5000,
    ),
    *(
        "(",
        "[a-",
        "a{1000}",
        "^.*$",
        "phase = 'RUNNING'",
        "labels.a = '\\q'",
        "create_time desc",
        "spec.slot='SX'",
    ),
    *(
        "2024-01-01T00:00:00Z",
        "../../etc",
        "%s%n",
        "'; DROP TABLE tasks; --",
        "{}",
        '{"a":NaN}',
        "MQ",
        "AAAA",
    ),
)
_BYTES = (b"", b"{}", b'{"a":NaN}', b"\0", b"\xff\xfe{\0}\0", b"[" * 2000, b'"x"', b"1", b"x" * 5000)
_DEPTH = 6


class Fuzzer:
    """Makes messages; `texts` are strings with a meaning to the server, such as names that exist."""

    def __init__(self, seed: int, texts: Sequence[str]) -> None:
        self.rng = random.Random(seed)
        self._texts = texts

    def fill(self, message: Message, share: float, depth: int = 0) -> None:
        """Set about this share of the fields, recursively, to random values."""
        for field in message.DESCRIPTOR.fields:
            if self.rng.random() < share:
                self._set(message, field, share, depth)

    def mutate(self, message: Message, changes: int = 1) -> None:
        """Replace a few fields anywhere in the message."""
        for _ in range(changes):
            part, depth = message, 0
            while self.rng.random() < 0.7:
                inner = [v for f, v in part.ListFields() if f.message_type is not None and not f.is_repeated]
                if not inner:
                    break
                part, depth = self.rng.choice(inner), depth + 1
            if part.DESCRIPTOR.fields:
                self._set(part, self.rng.choice(part.DESCRIPTOR.fields), 0.3, depth)

    def _set(self, message: Any, field: Any, share: float, depth: int) -> None:
        message.ClearField(field.name)
        value = getattr(message, field.name)
        entry = field.message_type
        count = self.rng.choice((0, 1, 1, 2, 5))
        if entry is not None and entry.GetOptions().map_entry:
            self._set_entries(value, entry.fields_by_name["key"], entry.fields_by_name["value"], depth, count)
        elif field.is_repeated:
            for _ in range(count):
                if entry is None:
                    value.append(self._scalar(field))
                elif depth < _DEPTH:
                    self._fill_inner(value.add(), share, depth)
        elif entry is None:
            setattr(message, field.name, self._scalar(field))
        elif depth < _DEPTH:
            value.SetInParent()
            self._fill_inner(value, share, depth)

    def _set_entries(self, entries: Any, key: Any, value: Any, depth: int, count: int) -> None:
        for _ in range(count):
            if value.message_type is None:
                entries[self._scalar(key)] = self._scalar(value)
            elif depth < _DEPTH:
                self._fill_inner(entries[self._scalar(key)], 0.3, depth)

    def _fill_inner(self, message: Any, share: float, depth: int) -> None:
        kind = message.DESCRIPTOR.full_name
        if kind in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            message.seconds = self.rng.choice(_SECONDS + _LONG_SECONDS)
            message.nanos = self.rng.choice(_NANOS)
        else:
            self.fill(message, share, depth + 1)

    def _scalar(self, field: Any) -> Any:
        rng = self.rng
        if field.type == Field.TYPE_STRING:
            return rng.choice(self._texts if rng.random() < 0.5 else _TEXTS)
        if field.type == Field.TYPE_BYTES:
            return rng.choice(_BYTES)
        if field.type == Field.TYPE_BOOL:
            return rng.random() < 0.5
        if field.type == Field.TYPE_ENUM:
            return rng.choice([*[value.number for value in field.enum_type.values], 99])
        if field.type in (Field.TYPE_DOUBLE, Field.TYPE_FLOAT):
            return rng.choice(_NUMBERS)
        return rng.choice([number for number in _INTEGERS if _fits(field, number)])


def _fits(field: Any, number: int) -> bool:
    bits: int = 32 if field.cpp_type in (Field.CPPTYPE_INT32, Field.CPPTYPE_UINT32) else 64
    unsigned = field.cpp_type in (Field.CPPTYPE_UINT32, Field.CPPTYPE_UINT64)
    least: int = 0 if unsigned else -(1 << (bits - 1))
    return number in range(least, least + (1 << bits))
