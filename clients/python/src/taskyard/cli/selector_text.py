"""Selectors of runners as one text, as kubectl has them: `zone=eu,gpu,!spot,tier in (a,b)`."""

from __future__ import annotations

import re

from taskyard.new_task import Expression, Selector
from taskyard.words import Invalid

# A comma separates requirements, unless it is within the values of one.
_REQUIREMENT = re.compile(r"(?:[^,(]|\([^)]*\))+")
_SET = re.compile(r"\s*(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)\s*", re.IGNORECASE)
_PAIR = re.compile(r"\s*(?P<key>[^=!\s]+)\s*(?P<operator>!=|==?)\s*(?P<value>[^=!]*?)\s*")
_KEY = re.compile(r"\s*(?P<absent>!?)\s*(?P<key>[^=!()\s]+)\s*")


def parse_selector(text: str) -> Selector:
    """The selector of a text; raises Invalid with the part that cannot be read."""
    labels: dict[str, str] = {}
    expressions: list[Expression] = []
    for part in _REQUIREMENT.findall(text):
        if found := _SET.fullmatch(part):
            values = [value.strip() for value in found["values"].split(",")]
            operator = "In" if found["operator"].lower() == "in" else "NotIn"
            expressions.append({"key": found["key"], "operator": operator, "values": values})
        elif (found := _PAIR.fullmatch(part)) and found["operator"] == "!=":
            expressions.append({"key": found["key"], "operator": "NotIn", "values": [found["value"]]})
        elif found:
            labels[found["key"]] = found["value"]
        elif found := _KEY.fullmatch(part):
            operator = "DoesNotExist" if found["absent"] else "Exists"
            expressions.append({"key": found["key"], "operator": operator})
        else:
            raise Invalid(f"{part.strip()!r} is no requirement; write zone=eu, gpu, !spot or tier in (a,b)")
    if not labels and not expressions:
        raise Invalid(f"{text!r} selects nothing; write for example zone=eu,gpu")
    return {"match_labels": labels, "match_expressions": expressions}
