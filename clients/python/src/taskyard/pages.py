"""Paginated lists."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeVar

from taskyard.channels import Channels

T = TypeVar("T")


async def pages(
    channels: Channels, method: Callable[[], Any], request: Any, field: str, view: Callable[[Any], T]
) -> AsyncGenerator[Sequence[T]]:
    """Yields the items in `field` of each page, converted by `view`; pages are fetched on demand.

    `method` returns the RPC on the running event loop: a channel belongs to the loop it is opened on.
    """
    while True:
        page = await channels.call(method(), request)
        yield [view(item) for item in getattr(page, field)]
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token
