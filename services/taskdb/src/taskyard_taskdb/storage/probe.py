"""The probe: whether the database accepts writes now, tried on a connection of its own."""

from __future__ import annotations

import asyncio
import errno
import os
from enum import IntEnum
from typing import Any

import psycopg
from psycopg import errors as pg

from taskyard_taskdb.storage.pool import PoolOptions, connect_arguments

PROBE_SECONDS = 3.0

# A temporary file of about 1 MB. Where it does not fit, no table can grow; unlike a row of a table it leaves
# nothing to vacuum.
_SPILL = """
WITH spilled AS MATERIALIZED (SELECT repeat(md5(n::text), 32) AS text FROM generate_series(1, 1000) n)
SELECT sum(length(text)) FROM spilled
"""
# One record of WAL, which the commit makes durable. It waits for synchronous standbys, as every write does.
_WRITE = "SELECT pg_logical_emit_message(true, 'taskyard', 'probe')"
_READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"


class DatabaseState(IntEnum):
    """What the last probe found (DatabaseState of AdminService)."""

    WRITABLE = 1
    READ_ONLY = 2
    DISK_FULL = 3
    UNREACHABLE = 4

    @property
    def problem(self) -> str:
        """One sentence with the remedy; empty if there is no problem."""
        return {
            DatabaseState.WRITABLE: "",
            DatabaseState.READ_ONLY: "the database is read-only; point taskdb to the primary",
            DatabaseState.DISK_FULL: "the disk of the database is full; make room on it",
            DatabaseState.UNREACHABLE: "the database cannot be reached; is PostgreSQL running?",
        }[self]


class Probe:
    """Not one of the pool's connections, which may all be in use by work that waits."""

    def __init__(self, url: str, options: PoolOptions) -> None:
        self._url = url
        self._arguments = connect_arguments(url, options) | {"prepare_threshold": None}
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self.state = DatabaseState.WRITABLE

    async def check(self) -> DatabaseState:
        """Try a write; a database that does not answer within a few seconds is unreachable."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                self.state = await self._try()
        except (psycopg.Error, OSError, TimeoutError) as error:
            self.state = _meaning(error)
            # On a full disk PostgreSQL may not accept a new connection.
            if self.state is DatabaseState.UNREACHABLE:
                await self.close()
        return self.state

    async def close(self) -> None:
        """Close the connection; the next check opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _try(self) -> DatabaseState:
        if self._connection is None:
            self._connection = await psycopg.AsyncConnection.connect(self._url, **self._arguments)
        connection = self._connection
        async with connection.transaction():
            row = await (await connection.execute(_READ_ONLY)).fetchone()
            if row is not None and row[0]:
                return DatabaseState.READ_ONLY
            await connection.execute("SET LOCAL work_mem = '64kB'")
            await connection.execute(_SPILL)
            await connection.execute(_WRITE)
        return DatabaseState.WRITABLE


def _meaning(error: BaseException) -> DatabaseState:
    # An error while connecting has no SQLSTATE, only the words of the operating system.
    if isinstance(error, pg.DiskFull) or os.strerror(errno.ENOSPC) in str(error):
        return DatabaseState.DISK_FULL
    if isinstance(error, pg.ReadOnlySqlTransaction):
        return DatabaseState.READ_ONLY
    return DatabaseState.UNREACHABLE
