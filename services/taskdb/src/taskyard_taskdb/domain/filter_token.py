"""Splits a filter into tokens with their positions."""

import re
from dataclasses import dataclass
from enum import Enum, auto

from taskyard.errors import FilterInvalid


class TokenKind(Enum):
    """Kinds of tokens."""

    WORD = auto()
    TEXT = auto()
    OPERATOR = auto()
    OPEN = auto()
    CLOSE = auto()
    MINUS = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the filter; positions count characters from 1."""

    kind: TokenKind
    text: str
    position: int


def invalid(token: Token, problem: str) -> FilterInvalid:
    """The error at a token."""
    return FilterInvalid.of("filter", f"position {token.position}: {problem}")


_SPACE = re.compile(r"\s*")
_OPERATOR = re.compile(r"<=|>=|!=|=|<|>|:")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# After an operator, so that times and negative numbers need no quotes.
_LITERAL = re.compile(r"[^\s()\"']+")
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# An escape such as \n has no meaning in a filter; it must not be read as its letter.
_ESCAPED = frozenset("\\\"'")
_SINGLE = {"(": TokenKind.OPEN, ")": TokenKind.CLOSE, "-": TokenKind.MINUS}


def tokenize(text: str) -> list[Token]:
    """The tokens, ending with END. Raises FilterInvalid."""
    tokens: list[Token] = []
    at = _skip(text, 0)
    while at < len(text):
        after_operator = bool(tokens) and tokens[-1].kind is TokenKind.OPERATOR
        token, end = _token(text, at, after_operator)
        tokens.append(token)
        at = _skip(text, end)
    return [*tokens, Token(TokenKind.END, "", len(text) + 1)]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _token(text: str, at: int, after_operator: bool) -> tuple[Token, int]:
    if text[at] in "\"'":
        return _quoted(text, at)
    if found := (_LITERAL if after_operator else _FIELD).match(text, at):
        return Token(TokenKind.WORD, found[0], at + 1), found.end()
    if found := _OPERATOR.match(text, at):
        return Token(TokenKind.OPERATOR, found[0], at + 1), found.end()
    kind = _SINGLE.get(text[at])
    token = Token(kind or TokenKind.END, text[at], at + 1)
    if kind is None:
        raise invalid(token, f"{text[at]!r} is not expected here; quote values that are more than a word")
    return token, at + 1


def _quoted(text: str, at: int) -> tuple[Token, int]:
    found = _QUOTED.match(text, at)
    if found is None:
        raise invalid(
            Token(TokenKind.TEXT, "", at + 1), "the quoted value does not end; add the closing quote"
        )
    raw = found[1] if found[1] is not None else found[2]
    for escape in _ESCAPE.finditer(raw):
        if escape[1] not in _ESCAPED:
            place = Token(TokenKind.TEXT, "", at + 2 + escape.start())
            raise invalid(place, f"{escape[0]} is not an escape; use \\\\, \\\" or \\' (a backslash is \\\\)")
    return Token(TokenKind.TEXT, _ESCAPE.sub(r"\1", raw), at + 1), found.end()
