"""One item that the database refuses does not fail its neighbours: batches are halved around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import psycopg

from taskyard.errors import Overloaded

Item = TypeVar("Item")

# Values it cannot store, constraints that do not hold, and locks or statements that take too long.
POISON = (psycopg.DataError, psycopg.IntegrityError, Overloaded)


async def isolate(
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Awaitable[None]],
    give_up: Callable[[Item, Exception], None],
) -> None:
    """Do `work` on all items or, where that fails, on ever smaller parts; `give_up` gets those at fault."""
    try:
        await work(items)
    except POISON as error:
        if len(items) == 1:
            give_up(items[0], error)
            return
        middle = len(items) // 2
        await isolate(items[:middle], work, give_up)
        await isolate(items[middle:], work, give_up)
