"""User-supplied regular expressions: RE2, which matches in time linear in the length of the text.

Needs the extra `server`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

MAX_LENGTH = 256
# RE2's memory budget for one pattern; a pattern within it matches an id in well below a millisecond.
MAX_BYTES = 256 * 1024


class PatternInvalid(ValueError):
    """`reason` describes the problem of `pattern`, to be appended to a field's name."""

    def __init__(self, pattern: str, reason: str) -> None:
        self.pattern = pattern
        self.reason = reason
        super().__init__(f'pattern "{pattern}" {reason}')


class Pattern:
    """A compiled pattern; it matches anywhere in a text unless it is anchored."""

    def __init__(self, text: str, program: Any) -> None:
        self.text = text
        self._program = program

    def matches(self, text: str) -> bool:
        return self._program.search(text) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


@lru_cache(maxsize=1024)
def compile(pattern: str) -> Pattern:
    """The compiled pattern; raises PatternInvalid for one that does not compile or is too large."""
    if len(pattern) > MAX_LENGTH:
        raise PatternInvalid(pattern, f"has {len(pattern)} characters; at most {MAX_LENGTH} are allowed")
    try:
        return Pattern(pattern, re2.compile(pattern, _options()))
    except re2.error as error:
        raise PatternInvalid(pattern, f"is not an RE2 pattern: {_reason(error)}") from None
    except UnicodeEncodeError:
        raise PatternInvalid(pattern, "is not valid Unicode") from None


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MAX_BYTES
    return options


def _reason(error: Exception) -> str:
    detail = error.args[0] if error.args else ""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    return "too large; use smaller repetition counts" if "too large" in text else text
