"""What comparing a document with a JSON Schema can cost, worked out before anything is compared.

Nothing can interrupt a comparison, so that a schema is refused if its references multiply, and a document if
it is too large for its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs

# Subschemas, references followed.
MAX_SIZE = 10_000
MAX_DEPTH = 100
PATTERNS = jsonschema_rs.RegexOptions(size_limit=256 * 1024, dfa_size_limit=1024 * 1024)
# The program of a pattern decides what a character costs: up to this many bytes about 1 µs, at the limit
# above nearly 10 µs; comparing with a subschema takes about 20 ns.
_SMALL_PROGRAM = jsonschema_rs.RegexOptions(size_limit=8 * 1024, dfa_size_limit=1024 * 1024)

# Keywords whose members have names that say nothing.
_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
_DEFINITIONS = ("$defs", "definitions")
# Of their members a value is compared with one at most.
_ALTERNATIVES = ("properties", "prefixItems")
_LITERALS = ("const", "enum", "default", "examples")
_REFERENCES = ("$ref", "$dynamicRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")


class Cost(NamedTuple):
    """Of a schema or a part of it."""

    size: int = 0
    """How many subschemas it has, references followed."""
    weight: int = 0
    """At most with how many subschemas one value is compared."""

    def plus(self, other: Cost) -> Cost:
        """Of both together."""
        return Cost(self.size + other.size, self.weight + other.weight)


_SUBSCHEMA = Cost(1, 1)
_SMALL_PATTERN = Cost(1, 50)
_LARGE_PATTERN = Cost(50, 500)


class SchemaCost:
    """The cost of one schema; raises ValueError for a schema that is refused."""

    def __init__(self, schema: Any) -> None:
        self.recursive = False
        self._schema = schema
        self._anchors = _find_anchors(schema)
        self._known: dict[int, Cost] = {}
        self._open: set[int] = set()
        self.weight = max(1, self._target(schema, 0).weight)

    def _target(self, node: Any, depth: int) -> Cost:
        """Of what something refers to."""
        if id(node) in self._open:
            # The library remembers which values it has compared with what refers to itself.
            self.recursive = True
            return _SUBSCHEMA
        if id(node) not in self._known:
            self._open.add(id(node))
            self._known[id(node)] = self._of(node, depth)
            self._open.discard(id(node))
        return self._known[id(node)]

    def _of(self, node: Any, depth: int) -> Cost:
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, list):
            return _sum(self._of(item, depth + 1) for item in node)
        if not isinstance(node, dict):
            return Cost()
        if depth and isinstance(node.get("$id"), str):
            raise ValueError(f'"$id" {node["$id"]!r} stands within it; only the whole may have one')
        found = _SUBSCHEMA.plus(_sum(self._of_keyword(*item, depth) for item in node.items()))
        if found.size > MAX_SIZE:
            raise ValueError(
                f"references and patterns expand it to more than {MAX_SIZE} subschemas; use fewer"
            )
        return found

    def _of_keyword(self, keyword: str, value: Any, depth: int) -> Cost:
        if keyword in _REFERENCES and isinstance(value, str):
            return self._target(self._pointed(value), depth + 1)
        if keyword in _LITERALS:
            # Scalars are looked up, the rest is compared one by one.
            listed = value if keyword == "enum" and isinstance(value, list) else ()
            return Cost(0, sum(isinstance(item, dict | list) for item in listed))
        if keyword == "pattern" and isinstance(value, str):
            return _pattern_cost(value)
        named = keyword in _NAMED and isinstance(value, dict)
        if not named and keyword not in _ALTERNATIVES:
            return self._of(value, depth + 1)
        members = value.values() if named else value if isinstance(value, list) else ()
        costs = [self._of(member, depth + 1) for member in members]
        if keyword in _DEFINITIONS:
            # Walked for what is refused; compared only where something refers to them.
            return Cost()
        if keyword == "patternProperties":
            costs += map(_pattern_cost, value)
        found = _sum(costs)
        if keyword in _ALTERNATIVES:
            return Cost(found.size, max((cost.weight for cost in costs), default=0))
        return found

    def _pointed(self, reference: str) -> Any:
        if not reference.startswith("#"):
            told = 'leads out of the schema; refer to its own parts, as in "#/$defs/name"'
            raise ValueError(f'"$ref" {reference[:80]!r} {told}')
        start, *parts = unquote(reference[1:]).split("/")
        found = self._anchors.get(start) if start else self._schema
        for part in parts:
            found = _member(found, part.replace("~1", "/").replace("~0", "~"))
        if found is None:
            raise ValueError(f'"$ref" {reference[:80]!r} leads to nothing in the schema')
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
