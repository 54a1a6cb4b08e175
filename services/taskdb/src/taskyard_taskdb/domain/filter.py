"""Filters: a subset of AIP-160 over a fixed table of fields, so that no filter can become a table scan.

    expression = factor {"AND" factor}          OR binds tighter than AND, as in AIP-160
    factor     = term {"OR" term}
    term       = ["NOT" | "-"] (restriction | "(" expression ")")
    restriction = field operator literal         = != < <= > >= and ":" for "has"

`parse` gives a Filter; storage turns its tree into SQL, a watch asks `matches` with a plain mapping.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from taskyard.errors import FilterInvalid
from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.domain.filter_fields import TASK_FIELDS, Field, FieldTable, FieldType, Value


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


MAX_BYTES = 4096
MAX_TERMS = 32
MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Comparison:
    """field OP value. `operator` is one of = != < <= > >=.

    The value of a phase or an actor type is the set of numbers it stands for; with `prefix` a text has only
    to begin with the value. `label` is the key where the field is a label. An absent value differs from all.
    """

    field: Field
    operator: str
    value: Value
    prefix: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Has:
    """The field has a value, or the label exists."""

    field: Field
    label: str = ""


@dataclass(frozen=True, slots=True)
class Not:
    """Not `term`."""

    term: "Node"


@dataclass(frozen=True, slots=True)
class And:
    """All of `terms`."""

    terms: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of `terms`."""

    terms: tuple["Node", ...]


Node = Comparison | Has | Not | And | Or


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that has been parsed and checked."""

    text: str
    root: Node

    def matches(self, fields: Mapping[str, Any]) -> bool:
        """Whether an object matches; `fields` has values by path, and a mapping where labels are."""
        return _holds(self.root, fields)


@lru_cache(maxsize=256)
def parse(text: str, fields: FieldTable = TASK_FIELDS) -> Filter:
    """The filter. Raises FilterInvalid, which names position, field and remedy."""
    size = len(text.encode())
    if size > MAX_BYTES:
        raise FilterInvalid.of(
            "filter", f"{size} bytes are more than the limit of {MAX_BYTES}; make it shorter"
        )
    if "\0" in text:
        raise invalid(Token(TokenKind.END, "", text.index("\0") + 1), "NUL is not allowed; remove it")
    return Filter(text, _Parser(text, fields).parse())


class _Parser:
    """Recursive descent over the tokens of one filter."""

    def __init__(self, text: str, fields: FieldTable) -> None:
        self._tokens = tokenize(text)
        self._at = 0
        self._fields = fields
        self._terms = 0

    def parse(self) -> Node:
        root = self._expression(0)
        token = self._peek()
        if token.kind is not TokenKind.END:
            hint = (
                f"write {token.text.upper()}"
                if token.text in ("and", "or", "not")
                else "join terms by AND or OR"
            )
            raise invalid(token, f"{_shown(token)} is not expected here; {hint}")
        return root

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind is not TokenKind.END
        return token

    def _takes(self, word: str) -> bool:
        token = self._peek()
        taken = token.kind is TokenKind.WORD and token.text == word
        self._at += taken
        return taken

    def _expression(self, depth: int) -> Node:
        factors = [self._factor(depth)]
        while self._takes("AND"):
            factors.append(self._factor(depth))
        return factors[0] if len(factors) == 1 else And(tuple(factors))

    def _factor(self, depth: int) -> Node:
        terms = [self._term(depth)]
        while self._takes("OR"):
            terms.append(self._term(depth))
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _term(self, depth: int) -> Node:
        token = self._peek()
        if self._takes("NOT") or token.kind is TokenKind.MINUS:
            self._at += token.kind is TokenKind.MINUS
            return Not(self._simple(depth))
        return self._simple(depth)

    def _simple(self, depth: int) -> Node:
        token = self._next()
        if token.kind is TokenKind.OPEN:
            if depth == MAX_DEPTH:
                raise invalid(token, f"parentheses are nested deeper than {MAX_DEPTH}; flatten the filter")
            inside = self._expression(depth + 1)
            closing = self._next()
            if closing.kind is not TokenKind.CLOSE:
                raise invalid(closing, f'")" is missing for the "(" at position {token.position}')
            return inside
        if token.kind is not TokenKind.WORD or token.text in ("AND", "OR", "NOT"):
            raise invalid(token, f"a field is expected here, not {_shown(token)}")
        return self._restriction(token)

    def _restriction(self, name: Token) -> Node:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise invalid(name, f"more than {MAX_TERMS} terms; split the query")
        field, label = self._field(name)
        sign = self._next()
        if sign.kind is not TokenKind.OPERATOR:
            raise invalid(sign, f'{name.text} needs an operator such as "=", not {_shown(sign)}')
        literal = self._next()
        if literal.kind not in (TokenKind.WORD, TokenKind.TEXT):
            raise invalid(literal, f"{name.text} {sign.text} needs a value, not {_shown(literal)}")
        if sign.text == ":":
            return _has(field, label, literal)
        return _comparison(field, label, sign, literal)

    def _field(self, name: Token) -> tuple[Field, str]:
        known = self._fields.find(name.text)
        if known is not None:
            return known, ""
        searched = name.text.removeprefix("payload.")
        if self._fields.labels == TASK_FIELDS.labels and searched != name.text and searched:
            key = f"{search_fields.PREFIX}{searched}"
            return Field(f"{self._fields.labels}.{key}", FieldType.LABEL), key
        label = name.text.removeprefix(f"{self._fields.labels}.")
        if self._fields.labels and label != name.text and label:
            return Field(name.text, FieldType.LABEL), label
        close = get_close_matches(name.text, self._fields.paths, n=1, cutoff=0.5)
        remedy = f"did you mean {close[0]}?" if close else f"known are {', '.join(self._fields.paths)}"
        raise invalid(name, f'"{name.text[:80]}" is not a field that can be filtered by; {remedy}')


def _shown(token: Token) -> str:
    return "the end" if token.kind is TokenKind.END else f'"{token.text[:80]}"'


def _has(field: Field, label: str, literal: Token) -> Node:
    if field.path == "payload":
        return Has(Field("metadata.labels", FieldType.LABELS), f"{search_fields.PREFIX}{literal.text}")
    if field.type is FieldType.LABELS:
        return Has(field, literal.text)
    if literal.kind is TokenKind.WORD and literal.text == "*":
        return Has(field, label)
    raise invalid(
        literal, f'"{field.shown}:" asks whether there is a value; write {field.shown}:* or use "="'
    )


def _comparison(field: Field, label: str, sign: Token, literal: Token) -> Node:
    if field.type is FieldType.LABELS:
        path = field.path
        raise invalid(sign, f'{path} needs a key: {path}.KEY = "value", or {path}:KEY')
    if sign.text not in field.operators:
        allowed = " ".join(field.operators)
        raise invalid(sign, f"{field.shown} can not be compared by {sign.text}; use one of {allowed}")
    prefix = field.prefixes and literal.kind is TokenKind.TEXT and literal.text.endswith("*")
    value = literal.text[:-1] if prefix else _read(field, literal)
    return Comparison(field, sign.text, value, prefix, label)


def _read(field: Field, literal: Token) -> Value:
    try:
        return field.read(literal.text)
    except ValueError as problem:
        raise invalid(literal, f'"{literal.text[:80]}" does not fit {field.shown}: {problem}') from None


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _holds(node: Node, fields: Mapping[str, Any]) -> bool:
    match node:
        case And(terms):
            return all(_holds(term, fields) for term in terms)
        case Or(terms):
            return any(_holds(term, fields) for term in terms)
        case Not(term):
            return not _holds(term, fields)
        case Has():
            # A label with an empty value is present, as it is for selectors; a text is absent when empty.
            return _value(node, fields) not in ((None,) if node.label else (None, ""))
        case Comparison():
            return _compares(node, _value(node, fields))


def _value(node: Has | Comparison, fields: Mapping[str, Any]) -> Any:
    path = node.field.path
    if node.label:
        holder = path if node.field.type is FieldType.LABELS else path[: -len(node.label) - 1]
        return (fields.get(holder) or {}).get(node.label)
    return fields.get(path)


def _compares(node: Comparison, value: Any) -> bool:
    if value is None:
        # An absent value equals nothing, so it differs from everything; texts are absent when empty.
        is_empty_text = node.value == "" and not node.prefix and not node.label
        return (node.operator == "!=") != is_empty_text
    if isinstance(node.value, frozenset):
        return (value in node.value) == (node.operator == "=")
    if node.prefix:
        return str(value).startswith(str(node.value)) == (node.operator == "=")
    return _COMPARE[node.operator](value, node.value)
