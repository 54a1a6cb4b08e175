"""Keeps a pool of connections trying to connect while PostgreSQL is away."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

ConnectionPool = AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]]

logger = logging.getLogger(__name__)
# It reports every attempt to connect; an outage is two lines here.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

# psycopg_pool doubles its delay with every failed attempt, up to minutes. An attempt that is repeated once,
# after this time, and then begun anew, connects within this time after PostgreSQL is back.
RECONNECT_SECONDS = 0.4


class Reconnector:
    """Begins new attempts when a pool has ended its own, whether or not a caller waits for a connection."""

    def __init__(self) -> None:
        self._tasks: dict[ConnectionPool, asyncio.Task[None]] = {}

    def begin(self, pool: ConnectionPool) -> None:
        """Connect until it succeeds; a pool calls this when its attempts have failed."""
        if pool not in self._tasks:
            logger.warning("the database is away")
            self._tasks[pool] = asyncio.create_task(self._connect(pool))

    async def stop(self) -> None:
        """End all attempts."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connect(self, pool: ConnectionPool) -> None:
        while True:
            try:
                # A request for a connection begins an attempt unless one is under way.
                connection = await pool.getconn(timeout=RECONNECT_SECONDS)
            except PoolTimeout:
                continue
            except PoolClosed:
                return
            del self._tasks[pool]
            await pool.putconn(connection)
            logger.warning("the database is back")
            return
