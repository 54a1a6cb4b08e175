"""The connection to PostgreSQL: a statement whose caller has left ends by itself if it is short."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import psycopg
from psycopg import waiting

# Nearly every statement ends within this time.
PATIENCE_SECONDS = 0.2


class PatientConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """Cancels a statement only if it lasts.

    psycopg cancels the statement of a cancelled task at once, by a further connection, for which PostgreSQL
    starts a process. Callers that open streams and leave them would cost more than those that stay.
    """

    _exchange: Any = None

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """As psycopg's, and remembers what is waited for."""
        self._exchange = gen
        return super().wait(gen, *args, **kwargs)

    async def _try_cancel(self, *, timeout: float = 5.0) -> None:
        """What psycopg awaits before it takes the last results of an interrupted statement."""
        try:
            # The first answer may be that of the preparation, which the statement itself follows.
            await waiting.wait_async(
                self._exchange, self.pgconn.socket, interval=PATIENCE_SECONDS, timeout=PATIENCE_SECONDS
            )
        except psycopg.Error:
            # It lasts, or it has failed; the latter leaves nothing to cancel.
            await super()._try_cancel(timeout=timeout)
