"""Validates requests against the protovalidate rules of their protos, before a handler gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import protovalidate
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from taskyard.errors import FieldInvalid, FieldViolation, TooLarge
from taskyard_kit import pattern_words, wellformed
from taskyard_kit.auth import Policy

# One validator per process: it compiles the rules of a message type once (up to 20 ms) and then takes about
# 10 µs per message. It holds the GIL, so a thread for large batches would not free the event loop.
_validator = protovalidate.Validator()

_SHOWN_LENGTH = 64


def prime(types: Iterable[Descriptor]) -> None:
    """Compile the rules of these message types now; raises protovalidate.CompilationError for a bad rule."""
    for descriptor in types:
        _validator.collect_violations(message_factory.GetMessageClass(descriptor)(), fail_fast=True)


def validate(message: Message) -> None:
    """Raises FieldInvalid that names every field of the message that breaks its rule."""
    if found := _validator.collect_violations(message):
        raise FieldInvalid(tuple(_violation(item) for item in found))


def decoder(decode: Callable[[bytes], Message], type_name: str, policy: Policy) -> Callable[[bytes], Message]:
    """A deserializer that also checks and validates as the policy asks; other bytes are FIELD_INVALID."""
    apart_from = policy.items

    def decode_request(data: bytes) -> Message:
        if len(data) > policy.max_bytes:
            problem = f"the request has {len(data)} bytes, above {policy.max_bytes}; send less at a time"
            raise TooLarge.of("", problem, "max_bytes")
        try:
            message = decode(data)
        except DecodeError:
            problem = f"{len(data)} bytes are not a message of type {type_name}; encode it with its proto"
            raise FieldInvalid.of("", problem, "decode") from None
        if policy.wellformed:
            wellformed.check(message, data, apart_from=apart_from)
        if policy.validate:
            validate(message)
        return message

    return decode_request


def _violation(found: protovalidate.Violation) -> FieldViolation:
    proto = found.proto
    # A gRPC message cannot contain NUL.
    description = (proto.message or f"breaks the rule {proto.rule_id}").replace("\0", "NUL")
    if proto.rule_id == "string.pattern":
        description = pattern_words.describe(str(found.rule_value))
    shown = _shown(found)
    return FieldViolation(
        _path(proto), f"{description}, not {shown}" if shown else description, proto.rule_id
    )


def _path(proto: Any) -> str:
    path = ""
    for element in proto.field.elements if proto.field is not None else ():
        path += ("." if path else "") + element.field_name
        if element.subscript is not None:
            value = element.subscript.value
            path += f'["{value}"]' if isinstance(value, str) else f"[{value}]"
    return path


def _shown(found: protovalidate.Violation) -> str:
    # Values of maps and of name-value pairs, and bytes, may be secrets; they are not included.
    elements = found.proto.field.elements if found.proto.field is not None else ()
    if not elements or elements[-1].field_name == "value":
        return ""
    if elements[-1].subscript is not None and not found.proto.for_key:
        return ""
    value = found.field_value
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, str) and value:
        return repr(value if len(value) <= _SHOWN_LENGTH else value[:_SHOWN_LENGTH] + "…")
    return ""
