"""Path templates of google.api.http: parsed once, matched segment by segment on the path as it was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from taskyard.errors import FieldInvalid

WILDCARD = "*"
_PART = re.compile(r"\{([a-z0-9_.]+)(?:=([^}]*))?\}|([^/{}]+)")


@dataclass(frozen=True)
class Variable:
    """A field that is bound to the segments from `start` to `end` of the path."""

    field: str
    start: int
    end: int


@dataclass(frozen=True)
class Template:
    """A path with its segments, which are literal or `*`, its variables and the verb behind the colon."""

    text: str
    segments: tuple[str, ...]
    variables: tuple[Variable, ...]
    verb: str

    @classmethod
    def parse(cls, text: str) -> Template:
        """The template of a rule; raises ValueError for what no rule of the protos uses."""
        path, verb = _split_verb(text)
        segments: list[str] = []
        variables: list[Variable] = []
        for field, pattern, literal in _parts(path):
            if literal:
                segments.append(literal)
                continue
            bound = (pattern or WILDCARD).split("/")
            variables.append(Variable(field, len(segments), len(segments) + len(bound)))
            segments += bound
        if "**" in segments:
            raise ValueError(f"{text}: ** is not supported")
        return cls(text, tuple(segments), tuple(variables), verb)

    def bind(self, path: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Each variable's field with its value in a path that matches. Raises FieldInvalid for bad UTF-8."""
        for variable in self.variables:
            parts = [decode(part) for part in path[variable.start : variable.end]]
            # A name keeps an encoded slash, so that it cannot become the name of something else.
            whole = len(parts) == 1
            yield variable.field, parts[0] if whole else "/".join(p.replace("/", "%2F") for p in parts)


def _split_verb(text: str) -> tuple[str, str]:
    closing = max(text.rfind("}"), text.rfind("/"))
    colon = text.find(":", closing)
    return (text, "") if colon < 0 else (text[:colon], text[colon + 1 :])


def _parts(path: str) -> Iterator[tuple[str, str, str]]:
    place = 0
    while place < len(path):
        found = _PART.match(path, place + 1)
        if path[place] != "/" or found is None:
            raise ValueError(f"{path} is not a path template")
        yield found[1] or "", found[2] or "", found[3] or ""
        place = found.end()


def decode(segment: str) -> str:
    """A segment of a path without its percent-encoding; raises FieldInvalid if that is no UTF-8."""
    if "%" not in segment:
        return segment
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise FieldInvalid.of("path", f"has bytes that are not UTF-8: {segment[:64]!r}") from None
