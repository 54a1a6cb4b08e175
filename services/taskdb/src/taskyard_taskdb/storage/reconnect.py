"""Keeps a pool of connections trying to connect while PostgreSQL is away."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from taskyard_taskdb.storage.availability import Availability

ConnectionPool = AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]]

# It reports every attempt to connect; Availability logs an outage once.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

# psycopg_pool doubles its delay with every failed attempt, up to minutes. An attempt that is repeated once,
# after this time, and then begun anew, connects within this time after PostgreSQL is back.
RECONNECT_SECONDS = 0.4
UNREACHABLE = "the database cannot be reached"


class Reconnector:
    """Begins new attempts when a pool has ended its own, whether or not a caller waits for a connection."""

    def __init__(self, availability: Availability) -> None:
        self._availability = availability
        self._tasks: dict[ConnectionPool, asyncio.Task[None]] = {}

    def begin(self, pool: ConnectionPool) -> None:
        """Connect until it succeeds; a pool calls this when its attempts have failed."""
        if pool not in self._tasks:
            self._availability.lost(pool, UNREACHABLE)
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
            # The pool may still hold one of before the outage.
            works = await _works(connection)
            await pool.putconn(connection)
            if works:
                del self._tasks[pool]
                self._availability.restored(pool)
                return


async def _works(connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> bool:
    try:
        await AsyncConnectionPool.check_connection(connection)
    except psycopg.Error:
        return False
    return True
