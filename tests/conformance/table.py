"""Behaviours as they are written: a folder with a README and a table of steps."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEHAVIOURS = Path(__file__).parent / "behaviours"
DEFAULT_SECONDS = 30.0
_VERBS = ("do", "start", "finish", "world")


class TableError(ValueError):
    """A table of steps is not well formed; the message names file and step."""


@dataclass(frozen=True)
class Step:
    """One step: a verb with its subject, and what has to come of it."""

    verb: str
    subject: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    expect: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    save: Mapping[str, str] = field(default_factory=dict)
    seconds: float = DEFAULT_SECONDS


@dataclass(frozen=True)
class Behaviour:
    """One behaviour of every client; `needs` are the features without which it does not apply."""

    name: str
    steps: tuple[Step, ...]
    needs: frozenset[str] = frozenset()


def behaviours(root: Path = BEHAVIOURS) -> list[Behaviour]:
    """Every behaviour by name; raises TableError."""
    return [load(folder) for folder in sorted(root.iterdir()) if folder.is_dir()]


def load(folder: Path) -> Behaviour:
    """The behaviour of a folder; raises TableError."""
    file = folder / "steps.toml"
    if not (folder / "README.md").is_file():
        raise TableError(f"{folder} has no README.md that states the behaviour")
    table = tomllib.loads(file.read_text())
    if unknown := table.keys() - {"needs", "step"}:
        raise TableError(f"{file}: unknown member {', '.join(sorted(unknown))}")
    steps = tuple(_step(found, f"{file}, step {number}") for number, found in enumerate(table["step"], 1))
    return Behaviour(folder.name, steps, frozenset(table.get("needs", ())))


def _step(found: dict[str, Any], where: str) -> Step:
    verbs = [verb for verb in _VERBS if verb in found]
    if len(verbs) != 1:
        raise TableError(f"{where}: needs exactly one of {', '.join(_VERBS)}")
    allowed = {*verbs, "with", "as", "expect", "error", "save", "seconds"}
    if unknown := found.keys() - allowed:
        raise TableError(f"{where}: unknown member {', '.join(sorted(unknown))}")
    if "expect" in found and "error" in found:
        raise TableError(f"{where}: expects an answer and an error")
    return Step(
        verbs[0],
        found[verbs[0]],
        found.get("with", {}),
        found.get("as", ""),
        found.get("expect"),
        found.get("error"),
        found.get("save", {}),
        float(found.get("seconds", DEFAULT_SECONDS)),
    )


def fill_in(value: Any, variables: Mapping[str, str]) -> Any:
    """The value with every $variable in its texts replaced; raises TableError for one without a value."""
    if isinstance(value, str):
        return re.sub(r"\$(\w+)", lambda found: _variable(found[1], variables), value)
    if isinstance(value, Mapping):
        return {key: fill_in(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_in(item, variables) for item in value]
    return value


def _variable(name: str, variables: Mapping[str, str]) -> str:
    if name not in variables:
        raise TableError(f"${name} has no value; save it in an earlier step")
    return variables[name]


def difference(expected: Any, found: Any, path: str = "") -> str:
    """Where a value is not as expected, empty if it is; members that are not expected do not count."""
    if isinstance(expected, str) and expected.startswith("~"):
        if isinstance(found, str) and re.fullmatch(expected[1:], found, re.DOTALL):
            return ""
    elif isinstance(expected, Mapping) and isinstance(found, Mapping):
        gaps = (difference(item, found.get(key), f"{path}.{key}") for key, item in expected.items())
        return next(filter(None, gaps), "")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        gaps = (difference(*pair, f"{path}[{n}]") for n, pair in enumerate(zip(expected, found, strict=True)))
        return next(filter(None, gaps), "")
    elif (type(expected) is type(found) and expected == found) or (expected == "null" and found is None):
        return ""
    return f"{path or 'the answer'} is {found!r}, expected {expected!r}"
