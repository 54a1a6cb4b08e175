"""Values for fields: the bounds that a field's rules name, extremes of its type, and names that exist."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

from buf.validate import validate_pb2

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
_TIMES = (
    0,
    1,
    -1,
    60,
    2**31,
    1_700_000_000,
    253_402_300_799,
    253_402_300_800,
    -62_135_596_800,
    -62_135_596_801,
)
_SPANS = (0, 1, -1, 60, 86_400, 99_999_999_999, 315_576_000_000, 315_576_000_001, 2**62, -(2**62), 2**63 - 1)
_NANOS = (0, 0, 0, 1, 999, 1_000_000, 999_999_999, 10**9, -1, 2**31 - 1, -(2**31))
_HARMLESS = ("", "a", "b-1", "x" * 60, "RUNNING", "team", "é")
_LONG = tuple("x" * count for count in (65, 300, 5000))
_HOSTILE = (
    *("-", ".", "..", "*", "a\0b", "\0", " ", "\U0001f600", "\u202e", "\ufeff", "a\nb", "\x1b[2J", "\ud7ff"),
    *(
        "(",
        "[a-",
        "(a+)+$",
        "a{1000}",
        "^.*$",
        "../../etc",
        "%s%n",
        "'; DROP TABLE tasks; --",
        "{}",
        "MQ",
        "AAAA",
    ),
    *('{"a":NaN}', "2024-01-01T00:00:00Z", "tenants/-", "tenants/-/tasks/-", "apiKeys/-", "runners/-"),
)
_FILTERS = (
    "status.phase = PENDING",
    'metadata.labels.team = "a"',
    "metadata.labels:team",
    'spec.slot = "s"',
    "NOT status.phase = LIVE",
    'metadata.create_time > "2024-01-01T00:00:00Z"',
    'metadata.create_time > "9999-12-31T23:59:59.999999999Z"',
    'metadata.create_time < "0001-01-01T00:00:00Z"',
    "spec.priority > 99999999999999999999",
    "status.attempt = -1",
    'id = "a*"',
    "labels.a = '\\q'",
    'id = "\\u0000"',
    "(" * 40,
    " AND ".join(["id = a"] * 33),
    "-id = a OR id = b",
)
_ORDERS = ("metadata.create_time", "metadata.create_time desc", "status.end_time", "create_time", "id, id")
_BYTES = (
    *(
        b"",
        b"{}",
        b'{"a":NaN}',
        b'{"a":1e999}',
        b'{"a":"\\u0000"}',
        b'{"a":"\\ud800"}',
        b"\0",
        b"\xff\xfe{\0}\0",
    ),
    *(
        b"[" * 2000,
        b'"x"',
        b"1",
        b"x" * 5000,
        b'{"n": 1}',
        b'{"type": "object"}',
        b'{"$ref": "#"}',
        b"x" * 32,
    ),
    b'{"type": "array", "uniqueItems": true, "items": {"pattern": "(a+)+$"}}',
)


class Known(Protocol):
    """What the server is known to have, by the name of the field that would hold it."""

    def texts(self, field: str) -> Sequence[str]: ...


class Values:
    """Draws values; the share `tame` of them lies within what a field's rules allow."""

    def __init__(self, rng: random.Random, known: Known, tame: float = 0.6) -> None:
        self.rng = rng
        self._known = known
        self.tame = tame

    def _is_tame(self) -> bool:
        return self.rng.random() < self.tame

    def scalar(self, field: Any) -> Any:
        """A value of this field, or of one item of it."""
        rules = field.GetOptions().Extensions[validate_pb2.field]
        if field.type == Field.TYPE_STRING:
            return self._text(field, rules.repeated.items.string if field.is_repeated else rules.string)
        if field.type == Field.TYPE_BYTES:
            return self.rng.choice(_BYTES)
        if field.type == Field.TYPE_BOOL:
            return self.rng.random() < 0.5
        if field.type == Field.TYPE_ENUM:
            numbers = [value.number for value in field.enum_type.values]
            return self.rng.choice(numbers if self._is_tame() else [*numbers, 99, -1])
        if field.type in (Field.TYPE_DOUBLE, Field.TYPE_FLOAT):
            return self.rng.choice(_NUMBERS[:4] if self._is_tame() else _NUMBERS)
        return self._integer(field, rules)

    def _text(self, field: Any, rules: Any) -> str:
        known = self._known.texts(field.name)
        if self._is_tame():
            choices: Sequence[str] = known or tuple(getattr(rules, "in")) or _HARMLESS
        elif field.name in ("filter", "order_by"):
            choices = _FILTERS + _ORDERS + _HOSTILE
        else:
            limit = rules.max_len or rules.max_bytes
            bounds = ("x" * limit, "x" * (limit + 1)) if 0 < limit <= 70_000 else _LONG
            choices = (*_HOSTILE, *bounds, *known[:4])
        return self.rng.choice(choices)

    def _integer(self, field: Any, rules: Any) -> int:
        bounds = _bounds(rules, field)
        if self._is_tame():
            return self.rng.choice([n for n in (*bounds, 0, 1, 2) if _allowed(n, bounds)] or [1])
        near = [n + step for n in bounds for step in (-1, 0, 1)]
        return self.rng.choice([n for n in (*_INTEGERS, *near) if _fits(field, n)])

    def fill_time(self, message: Any, field: Any) -> None:
        """Set a Timestamp or Duration."""
        rules = field.GetOptions().Extensions[validate_pb2.field]
        is_span = message.DESCRIPTOR.name == "Duration"
        if self._is_tame():
            spans = [rules.duration.gte, rules.duration.lte] if is_span else []
            chosen: Message | None = self.rng.choice(spans) if spans else None
            if chosen is not None and chosen.ByteSize():
                message.CopyFrom(chosen)
            else:
                message.seconds = 60 if is_span else 1_800_000_000
            return
        message.seconds = self.rng.choice(_SPANS if is_span else _TIMES + _SPANS)
        message.nanos = self.rng.choice(_NANOS)


def _bounds(rules: Any, field: Any) -> list[int]:
    kind = rules.WhichOneof("type")
    if kind is None or not hasattr(getattr(rules, kind), "gte") or kind in ("duration", "timestamp"):
        return []
    named = getattr(rules, kind)
    return [getattr(named, side) for side in ("gte", "lte") if named.HasField(side)]


def _allowed(number: int, bounds: Sequence[int]) -> bool:
    return not bounds or (number >= bounds[0] and (len(bounds) < 2 or number <= bounds[1]))


def _fits(field: Any, number: int) -> bool:
    bits: int = 32 if field.cpp_type in (Field.CPPTYPE_INT32, Field.CPPTYPE_UINT32) else 64
    unsigned = field.cpp_type in (Field.CPPTYPE_UINT32, Field.CPPTYPE_UINT64)
    least: int = 0 if unsigned else -(1 << (bits - 1))
    return number in range(least, least + (1 << bits))
