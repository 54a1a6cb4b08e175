"""JSON Schema 2020-12 of payloads and results: compiled once per text, matched in linear time.

Patterns are of the linear kind and nothing is ever fetched. What a comparison may cost is bounded before it
begins, because nothing can interrupt it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import jsonschema_rs
from google.protobuf import json_format

from taskyard.errors import FieldInvalid, FieldViolation
from taskyard.v1 import common_pb2
from taskyard_taskdb.rpc.schema_cost import PATTERNS, SchemaCost

# Bytes of a document times the subschemas that each of its values may be compared with: about a second.
MAX_WORK = 100_000_000
# The same for a list of what does not match: the library makes one of everything, at some µs each.
MAX_TOLD_WORK = 1_000_000
MAX_FINDINGS = 20
_JSON_TYPES = ("", "application/json")


class PayloadSchema:
    """A schema that compiled, and what it costs."""

    def __init__(self, validator: jsonschema_rs.Draft202012Validator, cost: SchemaCost) -> None:
        self._validator = validator
        self._weight = cost.weight
        # A list is made without a memory of what was compared: alternatives that recur multiply with depth.
        self._most_told = 0 if cost.recursive else MAX_TOLD_WORK

    def findings(self, document: Any, size: int, path: str) -> tuple[FieldViolation, ...]:
        """What does not match in a document of so many bytes, with the path into it; empty if all does."""
        work = size * self._weight
        if work > MAX_WORK:
            most = MAX_WORK // self._weight
            told = (
                f"has {size} bytes; its schema is too costly for more than {most}: send less, or simplify it"
            )
            return (FieldViolation(path, told, "json_schema.work"),)
        if self._validator.is_valid(document):
            return ()
        if work > self._most_told:
            told = "does not match the schema; where cannot be told of a large document or a recursive schema"
            return (FieldViolation(path, told, "json_schema"),)
        return self._differences(document, path)

    def _differences(self, document: Any, path: str) -> tuple[FieldViolation, ...]:
        found: list[FieldViolation] = []
        for error in self._validator.iter_errors(document):
            place = _place(path, [*error.instance_path, *_missing(error)])
            found.append(FieldViolation(place, error.message[:200], "json_schema"))
            if len(found) == MAX_FINDINGS:
                break
        return tuple(found)


@lru_cache(maxsize=512)
def _compile(text: bytes) -> PayloadSchema:
    schema = json.loads(text)
    if not isinstance(schema, dict | bool):
        raise ValueError("it is neither an object nor a boolean")
    cost = SchemaCost(schema)
    validator = jsonschema_rs.Draft202012Validator(schema, pattern_options=PATTERNS, offline=True)
    return PayloadSchema(validator, cost)


def compile_schema(text: bytes, field: str) -> PayloadSchema:
    """The compiled schema. Raises FieldInvalid, which says what is wrong with the text."""
    try:
        return _compile(text)
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as error:
        told = next((line for line in str(error).splitlines() if line.strip()), "it cannot be read")
        raise FieldInvalid.of(field, f"is not a JSON Schema (2020-12): {told[:200]}", "json_schema") from None


def document_of(payload: common_pb2.Payload) -> tuple[str, Any, int] | None:
    """Form, document and bytes of a payload; None for one that is not JSON or has no value."""
    form = payload.WhichOneof("value")
    if form == "json":
        return form, json_format.MessageToDict(payload.json), payload.json.ByteSize()
    if form == "raw" and payload.content_type in _JSON_TYPES:
        return form, json.loads(payload.raw or b"null"), len(payload.raw)
    return None


def check(schema: PayloadSchema, payload: common_pb2.Payload | None, path: str) -> tuple[FieldViolation, ...]:
    """What of a payload does not match; an absent one counts as an empty object."""
    if payload is None or payload.WhichOneof("value") is None:
        return schema.findings({}, 0, path)
    found = document_of(payload)
    if found is None:
        told = f"must be JSON, which its type has a schema for, not {payload.content_type!r}"
        return (FieldViolation(f"{path}.content_type", told, "json_schema"),)
    form, document, size = found
    return schema.findings(document, size, f"{path}.{form}")


def _place(path: str, steps: list[Any]) -> str:
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path[:500]


def _missing(error: Any) -> list[str]:
    name = getattr(error.kind, "property", None)
    return [str(name).strip('"')] if type(error.kind).__name__.endswith("Required") and name else []
