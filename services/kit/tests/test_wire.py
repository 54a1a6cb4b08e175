"""Fields that are written without a message read as those of one."""

from __future__ import annotations

import pytest
from google.protobuf.wrappers_pb2 import BytesValue, UInt64Value

from taskyard_kit.wire import field, varint


@pytest.mark.parametrize("value", [1, 127, 128, 300, 16_383, 16_384, 2**31, 2**53 - 1, 2**63])
def test_numbers_are_written_as_protobuf_writes_them(value: int) -> None:
    assert b"\x08" + varint(value) == UInt64Value(value=value).SerializeToString()


@pytest.mark.parametrize("size", [1, 127, 128, 20_000])
def test_a_field_has_its_length_before_it(size: int) -> None:
    assert field(b"\x0a", b"x" * size) == BytesValue(value=b"x" * size).SerializeToString()
