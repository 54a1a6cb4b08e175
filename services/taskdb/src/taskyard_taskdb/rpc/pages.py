"""Lists by id that a filter thins out: pages read one after the other until one is full."""

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

T = TypeVar("T")
Key = tuple[str, ...]

# Rows that one call reads at most; a page may then be short, with a token to go on.
_SCAN_LIMIT = 10_000


async def read_page(
    read: Callable[[Key, int], Awaitable[Sequence[T]]],
    key_of: Callable[[T], Key],
    *,
    asked_size: int,
    token: str,
    query: Sequence[str],
    filter_text: str = "",
    fields: FieldTable | None = None,
    values: Callable[[T], Mapping[str, Any]] | None = None,
) -> tuple[list[T], str]:
    """One page and the token of the next, empty at the end. `read` gives rows behind a key, by key.

    Raises FilterInvalid, PageTokenInvalid or FieldInvalid.
    """
    size = page.page_size(asked_size)
    wanted = filters.parse(filter_text, fields) if filter_text and fields is not None else None
    bound = json.dumps([current_principal().tenant, filter_text, *query])
    after = _decode(token, bound)
    found: list[T] = []
    scanned = 0
    while True:
        rows = await read(after, size + 1)
        for row in rows:
            if len(found) == size or scanned == _SCAN_LIMIT:
                return found, page.encode_page(after, bound, datetime.now(UTC))
            scanned += 1
            after = key_of(row)
            if wanted is None or values is None or wanted.matches(values(row)):
                found.append(row)
        if len(rows) <= size:
            return found, ""


def _decode(token: str, bound: str) -> Key:
    if not token:
        return ()
    values = page.decode_page(token, bound, datetime.now(UTC))
    if not all(isinstance(value, str) for value in values):
        raise PageTokenInvalid.of("page_token", "it belongs to another method; start again without a token")
    return tuple(str(value) for value in values)
