"""Values by which tasks are found, kept beside the labels under keys that no label can have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Keys of labels begin with a letter or a digit.
_RESERVED = "$"
PREFIX = "$payload."
# The slot of an external task. It does not queue for the slot, so that its column slot is empty.
SLOT = "$slot"
MAX_LENGTH = 256


def extract(document: Any, fields: Iterable[str]) -> dict[str, str]:
    """The values of these members of a JSON document, by the keys under which they are stored."""
    found = {f"{PREFIX}{name}": _text(_member(document, name)) for name in fields}
    return {key: value for key, value in found.items() if value is not None}


def visible(stored: Mapping[str, str]) -> Mapping[str, str]:
    """The labels among what is stored."""
    if not any(key.startswith(_RESERVED) for key in stored):
        return stored
    return {key: value for key, value in stored.items() if not key.startswith(_RESERVED)}


def _member(document: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(document, dict) or name not in document:
            return None
        document = document[name]
    return document


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        return None
    text = str(value)
    return text if len(text) <= MAX_LENGTH and "\0" not in text else None
