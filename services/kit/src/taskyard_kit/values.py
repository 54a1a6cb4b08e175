"""The types of settings: how each is parsed, described in messages and printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

HIDDEN = "********"

# In milliseconds, smallest first.
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_TRUE, _FALSE = {"true", "1", "yes", "on"}, {"false", "0", "no", "off"}
_URL_PASSWORD = re.compile(r"(?<=://)([^/@:\s]*):([^/@\s]+)@")


class Secret:
    """Text that no log, repr or `--print-config` shows; `reveal()` returns it."""

    __slots__ = ("_text", "file")

    def __init__(self, text: str = "", file: Path | None = None) -> None:
        self._text = text
        # The file that it was read from.
        self.file = file

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return HIDDEN if self._text else ""

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"


def parse_duration(text: str) -> timedelta:
    """ "30s", "1m30s", "1.5h", "250ms" as a timedelta; raises ValueError for anything else."""
    if not text or _DURATION.sub("", text):
        raise ValueError("a duration like 30s, 5m, 1h30m or 250ms")
    return timedelta(milliseconds=sum(float(n) * _UNITS[unit] for n, unit in _DURATION.findall(text)))


def format_duration(value: timedelta) -> str:
    """The shortest text that parse_duration reads back as `value`, in whole milliseconds."""
    milliseconds = value // timedelta(milliseconds=1)
    fits = [unit for unit, size in _UNITS.items() if milliseconds % size == 0]
    return f"{milliseconds // _UNITS[fits[-1]]}{fits[-1]}" if milliseconds else "0s"


def redact(text: str) -> str:
    """The text with the password of any URL in it hidden."""
    return _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)


def show(value: Any) -> str:
    """A value as `--print-config`, `--help` and messages show it; never a secret."""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(show(item) for item in value)
    if isinstance(value, Enum):
        return str(value.value)
    return "" if value is None else redact(str(value))


def _parse_bool(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError("true or false")
    return text.lower() in _TRUE


def _parse_secret(text: str) -> Secret:
    if not text.startswith("file:"):
        return Secret(text)
    try:
        file = Path(text.removeprefix("file:"))
        return Secret(file.read_text().strip(), file.absolute())
    except OSError as error:
        raise ValueError(f"a secret, or file:<path> of a readable file ({error.strerror})") from None


def _parse_number(kind: type[int] | type[float], named: str) -> Callable[[str], int | float]:
    def parse(text: str) -> int | float:
        try:
            return kind(text)
        except ValueError:
            raise ValueError(named) from None

    return parse


def _parse_tuple(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _parse_choice(choices: dict[str, Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        if text not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return choices[text]

    return parse


_PARSERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: _parse_number(int, "a whole number"),
    float: _parse_number(float, "a number"),
    bool: _parse_bool,
    timedelta: parse_duration,
    Path: lambda text: Path(text).expanduser(),
    Secret: _parse_secret,
    tuple[str, ...]: _parse_tuple,
}


def parser_of(kind: Any) -> Callable[[str], Any]:
    """The parser of this type; it raises ValueError that describes the expected value.

    Raises TypeError for a type that settings do not support.
    """
    if kind in _PARSERS:
        return _PARSERS[kind]
    if get_origin(kind) is Literal:
        return _parse_choice({str(choice): choice for choice in get_args(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _parse_choice({str(member.value): member for member in kind})
    inner = [arg for arg in get_args(kind) if arg is not type(None)]
    if get_origin(kind) in (Union, UnionType) and len(inner) == 1:
        parse = parser_of(inner[0])
        return lambda text: parse(text) if text else None
    raise TypeError(f"{kind} cannot be the type of a setting")
