"""JSON Schema 2020-12 of payloads and results: compiled once per text, matched in linear time.

Patterns are of the linear kind, nothing is ever fetched, and a schema whose references multiply without bound
is refused, because nothing can interrupt its evaluation.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import jsonschema_rs
from google.protobuf import json_format

from taskyard.errors import FieldInvalid, FieldViolation
from taskyard.v1 import common_pb2

# Subschemas that one value may have to be compared with, references followed.
MAX_EXPANSION = 10_000
MAX_DEPTH = 100
MAX_FINDINGS = 20
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=256 * 1024, dfa_size_limit=1024 * 1024)
_JSON_TYPES = ("", "application/json")


class PayloadSchema:
    """A schema that compiled."""

    def __init__(self, validator: jsonschema_rs.Draft202012Validator) -> None:
        self._validator = validator

    def findings(self, document: Any, path: str) -> tuple[FieldViolation, ...]:
        """What does not match, each with the path into the document; empty if all does."""
        if self._validator.is_valid(document):
            return ()
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
    _check_expansion(schema)
    return PayloadSchema(jsonschema_rs.Draft202012Validator(schema, pattern_options=_PATTERNS, offline=True))


def compile_schema(text: bytes, field: str) -> PayloadSchema:
    """The compiled schema. Raises FieldInvalid, which says what is wrong with the text."""
    try:
        return _compile(text)
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as error:
        told = next((line for line in str(error).splitlines() if line.strip()), "it cannot be read")
        raise FieldInvalid.of(field, f"is not a JSON Schema (2020-12): {told[:200]}", "json_schema") from None


def document_of(payload: common_pb2.Payload) -> tuple[str, Any] | None:
    """The form and the document of a payload; None for one that is not JSON or has no value."""
    form = payload.WhichOneof("value")
    if form == "json":
        return form, json_format.MessageToDict(payload.json)
    if form == "raw" and payload.content_type in _JSON_TYPES:
        return form, json.loads(payload.raw or b"null")
    return None


def check(schema: PayloadSchema, payload: common_pb2.Payload | None, path: str) -> tuple[FieldViolation, ...]:
    """What of a payload does not match; an absent one counts as an empty object."""
    if payload is None or payload.WhichOneof("value") is None:
        return schema.findings({}, path)
    found = document_of(payload)
    if found is None:
        told = f"must be JSON, which its type has a schema for, not {payload.content_type!r}"
        return (FieldViolation(f"{path}.content_type", told, "json_schema"),)
    form, document = found
    return schema.findings(document, f"{path}.{form}")


def _place(path: str, steps: list[Any]) -> str:
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path[:500]


def _missing(error: Any) -> list[str]:
    name = getattr(error.kind, "property", None)
    return [str(name).strip('"')] if type(error.kind).__name__.endswith("Required") and name else []


def _check_expansion(schema: Any) -> None:
    """Raises ValueError for a schema that makes one value be compared with too many subschemas."""
    sizes: dict[str, int] = {}
    open_references: set[str] = set()

    def size(node: Any, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, list):
            return sum(size(item, depth + 1) for item in node)
        if not isinstance(node, dict):
            return 0
        total = 1 + sum(size(item, depth + 1) for item in node.values())
        reference = node.get("$ref", node.get("$dynamicRef"))
        if isinstance(reference, str):
            total += referenced(reference, depth)
        if total > MAX_EXPANSION:
            raise ValueError(f"references expand it to more than {MAX_EXPANSION} subschemas; share fewer")
        return total

    def referenced(reference: str, depth: int) -> int:
        # What refers to itself is compared with each value once.
        if reference in open_references or not reference.startswith("#"):
            return 1
        if reference not in sizes:
            open_references.add(reference)
            sizes[reference] = size(_pointed(schema, reference), depth + 1)
            open_references.discard(reference)
        return sizes[reference]

    size(schema, 0)


def _pointed(schema: Any, reference: str) -> Any:
    found = schema
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found
