"""Pages of lists: tokens bound to the query, and the pages of a list by id with a filter."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from taskyard.errors import PageTokenInvalid
from taskyard_kit.auth import current_principal
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain import page
from taskyard_taskdb.domain.filter_fields import FieldTable
from taskyard_taskdb.domain.page import Value

T = TypeVar("T")
Key = tuple[str, ...]

# Rows that one call reads at most; a page that reaches it is short and has a token for the rest.
_SCAN_LIMIT = 10_000


async def read_page(
    read: Callable[[Key, int], Awaitable[Sequence[T]]],
    key_of: Callable[[T], Key],
    *,
    page_size: int,
    page_token: str,
    query: Sequence[str],
    key_size: int = 1,
    filter_text: str = "",
    fields: FieldTable | None = None,
    values: Callable[[T], Mapping[str, Any]] | None = None,
    step: int = _SCAN_LIMIT,
) -> tuple[list[T], str]:
    """One page of rows that match the filter, and the token of the next page (empty: this is the last one).

    `read` returns rows behind a key of `key_size` strings, ordered by key, `step` of them at most; the first
    page begins behind ().
    Raises FilterInvalid, PageTokenInvalid or FieldInvalid.
    """
    size = page.page_size(page_size)
    condition = filters.parse(filter_text, fields) if filter_text and fields is not None else None
    bound = binding(filter_text, *query)
    after: Key = decode(page_token, bound, *[str] * key_size) or ()
    found: list[T] = []
    scanned = 0
    step = min(step, size + 1)
    while True:
        rows = await read(after, step)
        for row in rows:
            if len(found) == size or scanned == _SCAN_LIMIT:
                return found, encode(after, bound)
            scanned += 1
            after = key_of(row)
            if condition is None or values is None or condition.matches(values(row)):
                found.append(row)
        if len(rows) < step:
            return found, ""


def binding(*parts: str) -> str:
    """The query that a page token is bound to: the caller's tenant, and the parts of the request."""
    return json.dumps([current_principal().tenant, *parts])


def encode(position: Sequence[Value], bound: str) -> str:
    """The token of the page behind a position."""
    return page.encode_page(position, bound, datetime.now(UTC))


def decode(token: str, bound: str, *types: type) -> tuple[Any, ...] | None:
    """The position behind which the page begins: values of these types; None for the first page.

    Raises PageTokenInvalid.
    """
    if not token:
        return None
    position = page.decode_page(token, bound, datetime.now(UTC))
    if len(position) != len(types) or not all(map(isinstance, position, types)):
        raise PageTokenInvalid.of("page_token", "it belongs to another method; start again without a token")
    return position
