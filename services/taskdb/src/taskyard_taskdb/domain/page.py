"""Pages of a list: their size, and tokens that continue exactly the query they came from."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from taskyard.errors import FieldInvalid, InvalidArgument, PageTokenInvalid, ResumeTokenInvalid
from taskyard_taskdb.domain.token_seal import SEAL_BYTES, is_sealed, seal

DEFAULT_SIZE = 100
MAX_SIZE = 1000
VALIDITY = timedelta(hours=24)

Value = str | int | datetime | None
"""One value of a keyset."""


def page_size(requested: int, field: str = "page_size") -> int:
    """How many items a page has: 0 is the default, the maximum caps it. Raises FieldInvalid."""
    if requested < 0:
        raise FieldInvalid.of(
            field, f"must not be negative, but is {requested}; 0 takes the default of {DEFAULT_SIZE}"
        )
    return min(requested, MAX_SIZE) or DEFAULT_SIZE


def encode_page(values: Sequence[Value], query: str, now: datetime) -> str:
    """A token for what follows `values` in the result of `query`: the request without size and token."""
    return _encode([int(now.timestamp()), *(_plain(value) for value in values)], query)


def decode_page(token: str, query: str, now: datetime) -> tuple[Value, ...]:
    """The values that were encoded. Raises PageTokenInvalid: damaged, of another query, or too old."""
    issued, *values = _decode(token, query, "page_token")
    if not isinstance(issued, int) or now.timestamp() - issued > VALIDITY.total_seconds():
        raise PageTokenInvalid.of("page_token", "it is older than 24 h; start again without a token")
    return tuple(_value(value) for value in values)


def encode_cursor(position: tuple[int, int], query: str) -> str:
    """A token for a place in an append-only sequence; it does not age."""
    return _encode(list(position), query)


def decode_cursor(token: str, query: str, field: str = "page_token") -> tuple[int, int]:
    """The position that was encoded. Raises PageTokenInvalid or, for a resume_token, ResumeTokenInvalid."""
    match _decode(token, query, field):
        case [int() as first, int() as second]:
            return first, second
    raise _damaged(field)


def _encode(document: list[object], query: str) -> str:
    body = json.dumps(document, separators=(",", ":")).encode()
    return urlsafe_b64encode(seal(body, query) + body).decode().rstrip("=")


def _decode(token: str, query: str, field: str) -> list[object]:
    try:
        raw = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    except ValueError:
        raise _damaged(field) from None
    found, body = raw[:SEAL_BYTES], raw[SEAL_BYTES:]
    # What a server has sealed needs no further check; nothing else is parsed.
    if not is_sealed(found, body, query):
        raise _damaged(field)
    document: list[object] = json.loads(body)
    return document


def _damaged(field: str) -> InvalidArgument:
    error = ResumeTokenInvalid if field == "resume_token" else PageTokenInvalid
    return error.of(
        field, "it is damaged or belongs to another query; repeat the query it came from, or start again"
    )


def _plain(value: Value) -> object:
    if isinstance(value, datetime):
        return {"t": (value - _EPOCH) // timedelta(microseconds=1)}
    return value


def _value(plain: object) -> Value:
    match plain:
        case {"t": int() as microseconds}:
            return _EPOCH + timedelta(microseconds=microseconds)
        case str() | int() | None:
            return plain
    raise _damaged("page_token")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
