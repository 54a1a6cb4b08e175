"""The connection to PostgreSQL: a statement whose caller has left ends by itself if it is short."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

# Nearly every statement ends within this time.
PATIENCE_SECONDS = 0.2


class PatientConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """Cancels a statement only if it lasts.

    psycopg cancels the statement of a cancelled task at once, by a further connection, for which PostgreSQL
    starts a process. Callers that open streams and leave them would cost more than those that stay.
    """

    async def _try_cancel(self, *, timeout: float = 5.0) -> None:
        """What psycopg awaits before it takes the last results of an interrupted statement."""
        if not await self._answers():
            await super()._try_cancel(timeout=timeout)

    async def _answers(self) -> bool:
        """Whether the server sends something within PATIENCE_SECONDS."""
        loop, socket = asyncio.get_running_loop(), self.pgconn.socket
        readable = asyncio.Event()
        loop.add_reader(socket, readable.set)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await readable.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(socket)
        return True
