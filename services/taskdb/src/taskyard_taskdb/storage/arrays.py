"""Columns of a batch as binary PostgreSQL arrays, for `unnest`, and rows of such columns for COPY.

psycopg's own list dumper asks for the type of each element, and so a batch's content would decide the
parameter types of the statement. Here the column says its type once, which is several times as fast and
keeps one prepared statement per query.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, compress, repeat
from typing import Any
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER = struct.Struct("!iiIii")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)
_COUNT = struct.Struct("!h")
_COPY_BEGIN = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_COPY_END = _COUNT.pack(-1)
# A bigint of 0, and the bits of a byte above 48 that 53 bits have.
_DRAWN = _LENGTH.pack(8) + bytes(8)
_FIVE_BITS = bytes(byte & 31 for byte in range(256))
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Microseconds from 1970 to _EPOCH.
_FROM_1970 = (_EPOCH - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND
# The length up to which a text that a column repeats is worth remembering.
_REMEMBERED_LENGTH = 64


class _Array(bytes):
    """An encoded array; each subclass is one array type of PostgreSQL."""

    oid: int
    element_oid: int
    # Each value as the array holds it, which is also how a row of COPY does.
    elements: list[bytes]


def _array_type(name: str, oid: int, element_oid: int) -> type[_Array]:
    made = type(name, (_Array,), {"oid": oid, "element_oid": element_oid})

    class ArrayDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: Any) -> bytes:
            return bytes(obj)

    ArrayDumper.oid = oid
    psycopg.adapters.register_dumper(made, ArrayDumper)
    return made


_Bools = _array_type("Bools", 1000, 16)
_Byteas = _array_type("Byteas", 1001, 17)
_Smallints = _array_type("Smallints", 1005, 21)
_Integers = _array_type("Integers", 1007, 23)
_Texts = _array_type("Texts", 1009, 25)
_Bigints = _array_type("Bigints", 1016, 20)
_Floats = _array_type("Floats", 1022, 701)
_Timestamps = _array_type("Timestamps", 1185, 1184)
_Intervals = _array_type("Intervals", 1187, 1186)
_Jsonbs = _array_type("Jsonbs", 3807, 3802)
_Uuids = _array_type("Uuids", 2951, 2950)


Encoder = Callable[[Sequence[Any]], _Array]
"""Makes an array of a column's values."""


def _join(kind: type[_Array], elements: list[bytes]) -> _Array:
    # The null flag is a hint only: PostgreSQL reads a length of -1 as null whatever it says.
    made = kind(_HEADER.pack(1, 1, kind.element_oid, len(elements), 1) + b"".join(elements))
    made.elements = elements
    return made


class Repeated:
    """A column of COPY that has the same element in every row."""

    __slots__ = ("_count", "element")

    def __init__(self, element: bytes, count: int) -> None:
        self.element = element
        self._count = count

    def __len__(self) -> int:
        return self._count


Column = Sequence[bytes] | Repeated
"""The elements of a column, row by row."""


def copy_data(columns: Sequence[Column]) -> bytes:
    """What COPY ... FROM STDIN (FORMAT binary) reads: the elements of these columns, row by row.

    Neighbouring columns that repeat their element are joined once for all rows.
    """
    if not columns:
        return _COPY_BEGIN + _COPY_END
    parts: list[Iterable[bytes]] = []
    same = _COUNT.pack(len(columns))
    for column in columns:
        if isinstance(column, Repeated):
            same += column.element
            continue
        if same:
            parts.append(repeat(same))
            same = b""
        parts.append(column)
    parts.append(repeat(same, len(columns[0])))
    return b"".join((_COPY_BEGIN, *chain.from_iterable(zip(*parts, strict=False)), _COPY_END))


def chosen(column: Column, selected: Sequence[bool]) -> Column:
    """The selected rows of a column."""
    if isinstance(column, Repeated):
        return Repeated(column.element, sum(selected))
    return list(compress(column, selected))


def elements(encode: Encoder, values: Sequence[Any]) -> Column:
    """The elements of a column; most columns of a batch say the same in every row."""
    if values and values.count(values[0]) == len(values):
        return Repeated(encode((values[0],)).elements[0], len(values))
    return encode(values).elements


def array(encode: Encoder, values: Sequence[Any]) -> _Array:
    """The array of a column that mostly says the same in every row: such an array is made once."""
    first = values[0]
    small = isinstance(first, int | None) or (isinstance(first, str) and len(first) <= _REMEMBERED_LENGTH)
    if small and values.count(first) == len(values):
        return _repeat(encode, first, len(values))
    return encode(values)


@functools.lru_cache(maxsize=4096)
def _repeat(encode: Encoder, value: Any, count: int) -> _Array:
    return encode((value,) * count)


def _fixed(kind: type[_Array], code: str) -> Encoder:
    item = struct.Struct("!i" + code)
    size, pack = item.size - 4, item.pack

    def encode(values: Sequence[Any]) -> _Array:
        return _join(kind, [_NULL if v is None else pack(size, v) for v in values])

    return encode


bools = _fixed(_Bools, "?")
smallints = _fixed(_Smallints, "h")
integers = _fixed(_Integers, "i")
bigints = _fixed(_Bigints, "q")
floats = _fixed(_Floats, "d")
_timestamps = _fixed(_Timestamps, "q")


def drawn_bigints(count: int) -> _Array:
    """bigint[] of random numbers of 53 bits: languages that have only doubles read them exactly.

    Written by columns of bytes, because each number in turn costs thirty times as much.
    """
    numbers = bytearray(_DRAWN * count)
    drawn = os.urandom(7 * count)
    numbers[5::12] = drawn[:count].translate(_FIVE_BITS)
    for place in range(1, 7):
        numbers[5 + place :: 12] = drawn[place * count : (place + 1) * count]
    return _Bigints(_HEADER.pack(1, 0, _Bigints.element_oid, count, 1) + numbers)


def whole_bigints(values: Sequence[int]) -> _Array:
    """bigint[] of a column without nulls, at a quarter of what `bigints` costs; not for COPY."""
    return _whole(_Bigints, values)


def unix_times(values: Sequence[int]) -> _Array:
    """timestamptz[] of microseconds since 1970, without nulls; not for COPY."""
    return _whole(_Timestamps, [value - _FROM_1970 for value in values])


def _whole(kind: type[_Array], values: Sequence[int]) -> _Array:
    """Written by columns of bytes, as in drawn_bigints."""
    packed = struct.pack(f"!{len(values)}q", *values)
    numbers = bytearray(_DRAWN * len(values))
    for place in range(8):
        numbers[4 + place :: 12] = packed[place::8]
    return kind(_HEADER.pack(1, 0, kind.element_oid, len(values), 1) + numbers)


def repeating_texts(values: Sequence[str]) -> _Array:
    """text[] of a column with few different values."""
    encoded = {value: texts((value,)).elements[0] for value in set(values)}
    return _join(_Texts, [encoded[value] for value in values])


def timestamps(values: Sequence[datetime | None]) -> _Array:
    """timestamptz[]; the datetimes are aware."""
    return _timestamps([None if v is None else (v - _EPOCH) // _MICROSECOND for v in values])


def timestamp_series(last: datetime, count: int) -> list[bytes]:
    """The elements of timestamps that are a microsecond apart, up to `last`."""
    end = (last - _EPOCH) // _MICROSECOND + 1
    return _timestamps(range(end - count, end)).elements


def intervals(values: Sequence[timedelta | None]) -> _Array:
    """interval[], in microseconds alone, so that a day is 24 hours."""
    pack = struct.Struct("!iqii").pack
    encoded = [_NULL if v is None else pack(16, v // _MICROSECOND, 0, 0) for v in values]
    return _join(_Intervals, encoded)


def texts(values: Sequence[str | None]) -> _Array:
    """text[]."""
    return _variable(_Texts, [None if v is None else v.encode() for v in values])


def byteas(values: Sequence[bytes | None]) -> _Array:
    """bytea[]."""
    return _variable(_Byteas, values)


def uuids(values: Sequence[UUID | bytes | None]) -> _Array:
    """uuid[]; bytes are the sixteen of the id."""
    return _variable(_Uuids, [v.bytes if isinstance(v, UUID) else v for v in values])


def jsonbs(values: Sequence[str | None]) -> _Array:
    """jsonb[]; each value is a document as text."""
    return _variable(_Jsonbs, [None if v is None else b"\x01" + v.encode() for v in values])


def _variable(kind: type[_Array], values: Sequence[bytes | None]) -> _Array:
    length = _LENGTH.pack
    return _join(kind, [_NULL if v is None else length(len(v)) + v for v in values])
