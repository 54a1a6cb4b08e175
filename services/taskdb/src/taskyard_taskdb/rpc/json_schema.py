"""JSON Schema 2020-12 of payloads and results: compiled once per text, validated in linear time.

Patterns run in linear time and no reference is fetched. A validation cannot be interrupted, so its cost is
bounded before it begins: a schema is rejected if its references multiply, a document if it is too large for
its schema. `check_now` validates only what takes a few milliseconds; `schema_checks` sends the rest to a
process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs

from taskyard.convert import from_struct
from taskyard.errors import FieldInvalid, FieldViolation
from taskyard.v1 import common_pb2
from taskyard_taskdb.domain.bounded_cache import BoundedCache

# Bytes of a document times the subschemas that each of its values may be compared with; takes about 1 s.
MAX_WORK = 100_000_000
# The same for listing violations: the library collects all of them, at a few µs each.
MAX_LIST_WORK = 1_000_000
MAX_FINDINGS = 20
# The same two bounds for a validation in the event loop: up to about 20 ms.
NOW_WORK = 2_000_000
NOW_LIST_WORK = 40_000
# The rule of a violation by a document that is not JSON.
NOT_JSON = "json"
_JSON_TYPES = ("", "application/json")


class PayloadSchema:
    """A compiled schema and its cost."""

    def __init__(self, validator: jsonschema_rs.Draft202012Validator, cost: SchemaCost) -> None:
        self._validator = validator
        self._weight = cost.weight
        # Listing does not cache comparisons, so that recursive alternatives multiply with depth.
        self._max_list_work = 0 if cost.recursive else MAX_LIST_WORK

    def work(self, size: int) -> int:
        """The estimated cost of validating a document of `size` bytes."""
        return size * self._weight

    def findings(self, document: Any, size: int, path: str) -> tuple[FieldViolation, ...]:
        """The violations in a document of `size` bytes, each with its path; empty for a valid one."""
        if refusal := self.refusal(size, path):
            return refusal
        if self._validator.is_valid(document):
            return ()
        return self._listed(document, size, path)

    def findings_now(self, document: Any, size: int, path: str) -> tuple[FieldViolation, ...] | None:
        """The same; None if listing the violations takes longer than the event loop may be occupied."""
        if self._validator.is_valid(document):
            return ()
        if NOW_LIST_WORK < self.work(size) <= self._max_list_work:
            return None
        return self._listed(document, size, path)

    def refusal(self, size: int, path: str) -> tuple[FieldViolation, ...]:
        """The violation of a document that is too large for this schema; empty for a smaller one."""
        if self.work(size) <= MAX_WORK:
            return ()
        most = MAX_WORK // self._weight
        problem = f"has {size} bytes; its schema allows {most} at its cost: send less, or simplify the schema"
        return (FieldViolation(path, problem, "json_schema.work"),)

    def _listed(self, document: Any, size: int, path: str) -> tuple[FieldViolation, ...]:
        if self.work(size) > self._max_list_work:
            problem = (
                "does not match the schema; violations are not listed "
                "for a large document or a recursive schema"
            )
            return (FieldViolation(path, problem, "json_schema"),)
        return self._differences(document, path)

    def _differences(self, document: Any, path: str) -> tuple[FieldViolation, ...]:
        found: list[FieldViolation] = []
        for error in self._validator.iter_errors(document):
            field = _path(path, [*error.instance_path, *_missing(error)])
            found.append(FieldViolation(field, error.message[:200], "json_schema"))
            if len(found) == MAX_FINDINGS:
                break
        return tuple(found)


# A compiled schema takes about 10 KiB for each pattern, measured with 48 of them, and a multiple of its text.
_compiled: BoundedCache[bytes, PayloadSchema] = BoundedCache(512, 64 * 1024 * 1024)


def _cached(text: bytes) -> PayloadSchema:
    found = _compiled.get(text)
    if found is None:
        found = _compile(text)
        _compiled.put(text, found, len(text) * 10 + _patterns(text) * 10_000 + 10_000)
    return found


def _compile(text: bytes) -> PayloadSchema:
    schema = json.loads(text)
    if not isinstance(schema, dict | bool):
        raise ValueError("it is neither an object nor a boolean")
    cost = SchemaCost(schema)
    validator = jsonschema_rs.Draft202012Validator(schema, pattern_options=PATTERNS, offline=True)
    return PayloadSchema(validator, cost)


def compile_schema(text: bytes, field: str) -> PayloadSchema:
    """The compiled schema. Raises FieldInvalid with the reason."""
    try:
        return _cached(text)
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as error:
        problem = next((line for line in str(error).splitlines() if line.strip()), "it cannot be read")
        raise FieldInvalid.of(
            field, f"is not a JSON Schema (2020-12): {problem[:200]}", "json_schema"
        ) from None


def compiling_work(text: bytes) -> int:
    """The estimated cost of compiling a text, in the units of NOW_WORK."""
    if _compiled.get(text) is not None:
        return 0
    return len(text) * 30 + _patterns(text) * 40_000


def _patterns(text: bytes) -> int:
    """The number of patterns at most: an escape may spell their keyword."""
    return text.count(b"pattern") + text.count(b"\\u")


def size_of(payload: common_pb2.Payload | None) -> int:
    """The bytes of a payload's document."""
    if payload is None:
        return 0
    return payload.json.ByteSize() if payload.WhichOneof("value") == "json" else len(payload.raw)


def check(schema: PayloadSchema, payload: common_pb2.Payload | None, path: str) -> tuple[FieldViolation, ...]:
    """The violations in a payload; an absent payload counts as an empty object."""
    found = _read(payload, path)
    return schema.findings(*found) if not isinstance(found, FieldViolation) else (found,)


def check_now(
    schema: PayloadSchema, payload: common_pb2.Payload | None, path: str
) -> tuple[FieldViolation, ...] | None:
    """The same in a few milliseconds; None for a check that takes longer."""
    size = size_of(payload)
    if refusal := schema.refusal(size, f"{path}.{payload.WhichOneof('value')}" if payload else path):
        return refusal
    if schema.work(size) > NOW_WORK:
        return None
    found = _read(payload, path)
    return schema.findings_now(*found) if not isinstance(found, FieldViolation) else (found,)


def _read(payload: common_pb2.Payload | None, path: str) -> tuple[Any, int, str] | FieldViolation:
    """Document, size and path of a payload, or what is wrong with its form."""
    form = payload.WhichOneof("value") if payload is not None else None
    if payload is None or form is None:
        return {}, 0, path
    if form == "json":
        return from_struct(payload.json), payload.json.ByteSize(), f"{path}.json"
    if payload.content_type in _JSON_TYPES:
        try:
            return json.loads(payload.raw or b"null"), len(payload.raw), f"{path}.raw"
        except (ValueError, RecursionError) as error:
            return FieldViolation(f"{path}.raw", f"is not JSON: {error}"[:200], NOT_JSON)
    problem = f"must be JSON, which its type has a schema for, not {payload.content_type!r}"
    return FieldViolation(f"{path}.content_type", problem, "json_schema")


def check_object(payload: common_pb2.Payload | None, path: str) -> tuple[FieldViolation, ...]:
    """The violation of JSON that is not an object, which is what a type without a schema allows."""
    if payload is None or payload.WhichOneof("value") != "raw" or payload.content_type not in _JSON_TYPES:
        return ()
    if not payload.raw or payload.raw.lstrip(b" \t\r\n")[:1] == b"{":
        return ()
    problem = "must be a JSON object, as its type has no payload_schema; send an object, or add a schema"
    return (FieldViolation(f"{path}.raw", problem, "json_schema"),)


def _path(path: str, steps: list[Any]) -> str:
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path[:500]


def _missing(error: Any) -> list[str]:
    name = getattr(error.kind, "property", None)
    return [str(name).strip('"')] if type(error.kind).__name__.endswith("Required") and name else []


# Subschemas, with references followed.
MAX_SIZE = 10_000
MAX_DEPTH = 100
PATTERNS = jsonschema_rs.RegexOptions(size_limit=256 * 1024, dfa_size_limit=1024 * 1024)
# The program of a pattern decides what a character costs: up to this many bytes about 1 µs, at the limit
# above nearly 10 µs; comparing with a subschema takes about 20 ns.
_SMALL_PROGRAM = jsonschema_rs.RegexOptions(size_limit=8 * 1024, dfa_size_limit=1024 * 1024)

# Keywords whose members are named by the schema's author.
_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
_DEFINITIONS = ("$defs", "definitions")
# Keywords of whose members a value is compared with one at most.
_ALTERNATIVES = ("properties", "prefixItems")
_LITERALS = ("const", "enum", "default", "examples")
_REFERENCES = ("$ref", "$dynamicRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")


class Cost(NamedTuple):
    """The cost of a schema or of a part of it."""

    size: int = 0
    """The number of subschemas, with references followed."""
    weight: int = 0
    """The maximum number of subschemas that one value is compared with."""

    def plus(self, other: Cost) -> Cost:
        """The cost of both together."""
        return Cost(self.size + other.size, self.weight + other.weight)


_SUBSCHEMA = Cost(1, 1)
_SMALL_PATTERN = Cost(1, 50)
_LARGE_PATTERN = Cost(50, 500)


class SchemaCost:
    """The cost of one schema. Raises ValueError for a schema that is rejected."""

    def __init__(self, schema: Any) -> None:
        self.recursive = False
        self._schema = schema
        self._anchors = _find_anchors(schema)
        self._costs: dict[int, Cost] = {}
        self._entered: set[int] = set()
        self.weight = max(1, self._referenced_cost(schema, 0).weight)

    def _referenced_cost(self, node: Any, depth: int) -> Cost:
        """The cost of the target of a reference."""
        if id(node) in self._entered:
            # The library caches which values it has compared with a schema that refers to itself.
            self.recursive = True
            return _SUBSCHEMA
        if id(node) not in self._costs:
            self._entered.add(id(node))
            self._costs[id(node)] = self._node_cost(node, depth)
            self._entered.discard(id(node))
        return self._costs[id(node)]

    def _node_cost(self, node: Any, depth: int) -> Cost:
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, list):
            return _sum(self._node_cost(item, depth + 1) for item in node)
        if not isinstance(node, dict):
            return Cost()
        if depth and isinstance(node.get("$id"), str):
            raise ValueError(f'"$id" {node["$id"]!r} is nested; only the root of a schema may have one')
        found = _SUBSCHEMA.plus(_sum(self._keyword_cost(*item, depth) for item in node.items()))
        if found.size > MAX_SIZE:
            raise ValueError(
                f"references and patterns expand it to more than {MAX_SIZE} subschemas; use fewer"
            )
        return found

    def _keyword_cost(self, keyword: str, value: Any, depth: int) -> Cost:
        if keyword in _REFERENCES and isinstance(value, str):
            return self._referenced_cost(self._target_of(value), depth + 1)
        if keyword in _LITERALS:
            # Scalars are looked up, objects and lists are compared one by one.
            listed = value if keyword == "enum" and isinstance(value, list) else ()
            return Cost(0, sum(isinstance(item, dict | list) for item in listed))
        if keyword == "pattern" and isinstance(value, str):
            return _pattern_cost(value)
        named = keyword in _NAMED and isinstance(value, dict)
        if not named and keyword not in _ALTERNATIVES:
            return self._node_cost(value, depth + 1)
        members = value.values() if named else value if isinstance(value, list) else ()
        costs = [self._node_cost(member, depth + 1) for member in members]
        if keyword in _DEFINITIONS:
            # Definitions are walked to reject invalid ones; they cost only where a reference leads to them.
            return Cost()
        if keyword == "patternProperties":
            costs += map(_pattern_cost, value)
        found = _sum(costs)
        if keyword in _ALTERNATIVES:
            return Cost(found.size, max((cost.weight for cost in costs), default=0))
        return found

    def _target_of(self, reference: str) -> Any:
        if not reference.startswith("#"):
            problem = 'is outside of the schema; refer to its own parts, as in "#/$defs/name"'
            raise ValueError(f'"$ref" {reference[:80]!r} {problem}')
        start, *parts = unquote(reference[1:]).split("/")
        found = self._anchors.get(start) if start else self._schema
        for part in parts:
            found = _member(found, part.replace("~1", "/").replace("~0", "~"))
        if found is None:
            raise ValueError(f'"$ref" {reference[:80]!r} has no target in the schema')
        return found


def _member(node: Any, key: str) -> Any:
    if isinstance(node, dict):
        return node.get(key)
    if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
        return node[int(key)]
    return None


def _sum(costs: Iterator[Cost] | list[Cost]) -> Cost:
    total = Cost()
    for cost in costs:
        total = total.plus(cost)
    return total


def _pattern_cost(text: str) -> Cost:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": text}, pattern_options=_SMALL_PROGRAM)
    except ValueError:
        return _LARGE_PATTERN
    return _SMALL_PATTERN


def _find_anchors(schema: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            for name in {node[key] for key in _ANCHORS if isinstance(node.get(key), str)}:
                if name in found:
                    raise ValueError(f"the anchor {name[:80]!r} is given twice")
                found[name] = node
        left += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return found
