"""Connections to PostgreSQL: transactions, their retries, and the one translation of errors."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from taskyard.errors import Overloaded, StorageUnavailable
from taskyard_taskdb.storage import (
    arrays,  # noqa: F401  registers the arrays before any connection is made
    database_url,
)
from taskyard_taskdb.storage.availability import Availability
from taskyard_taskdb.storage.connection import PatientConnection
from taskyard_taskdb.storage.numbered import numbered
from taskyard_taskdb.storage.reconnect import RECONNECT_SECONDS, ConnectionPool, Reconnector
from taskyard_taskdb.storage.turns import SHARED, NoTurn, Turns

Params = Sequence[Any] | Mapping[str, Any] | None
Row = tuple[Any, ...]
T = TypeVar("T")

_CONFLICTS = (pg.DeadlockDetected, pg.SerializationFailure)
_TIMEOUTS = (pg.LockNotAvailable, pg.QueryCanceled)
# Classes of SQLSTATE that say the server cannot do this now: connection, resources, operator, standby.
_UNAVAILABLE = ("08", "53", "57P", "25006", "58")


READ_REFUSED = "nothing was changed, repeat the call a moment later"


@dataclass(frozen=True)
class PoolOptions:
    """Sizes and limits.

    `reserve` connections are kept for heartbeats, which must never queue behind work; `queries` connections
    serve lists, statistics and audit, which must never queue before it. A `pooled` URL leads to a pooler in
    transaction mode: nothing that belongs to a session may outlive a transaction.
    """

    size: int = 8
    reserve: int = 2
    queries: int = 4
    acquire_timeout: timedelta = timedelta(seconds=5)
    connect_timeout: timedelta = timedelta(seconds=5)
    statement_timeout: timedelta = timedelta(seconds=30)
    lock_timeout: timedelta = timedelta(seconds=2)
    idle_in_transaction_timeout: timedelta = timedelta(seconds=15)
    pooled: bool = False


class Tx:
    """One transaction. Statements are prepared on first use and results arrive in binary form.

    Behind a pooler nothing is prepared.
    """

    __slots__ = ("_cursor", "_prepares", "connection")

    def __init__(self, connection: psycopg.AsyncConnection[Row], *, prepares: bool = True) -> None:
        self.connection = connection
        self._prepares = prepares
        self._cursor = psycopg.AsyncRawCursor(connection)
        self._cursor.format = psycopg.pq.Format.BINARY

    async def execute(self, sql: str, params: Params = None, *, prepare: bool = True) -> int:
        """The number of rows that the statement touched."""
        await self._execute(sql, params, prepare)
        return self._cursor.rowcount

    async def fetch(self, sql: str, params: Params = None, *, prepare: bool = True) -> list[Row]:
        """All rows."""
        await self._execute(sql, params, prepare)
        return await self._cursor.fetchall()

    async def copy(self, sql: str, data: bytes) -> None:
        """Sends the data to a COPY ... FROM STDIN."""
        async with self._cursor.copy(sql) as copy:
            await copy.write(data)

    async def fetch_row(self, sql: str, params: Params = None, *, prepare: bool = True) -> Row | None:
        """The first row, or None."""
        await self._execute(sql, params, prepare)
        return await self._cursor.fetchone()

    async def _execute(self, sql: str, params: Params, prepare: bool) -> None:
        text, values = numbered(sql, params)
        await self._cursor.execute(text, values, prepare=prepare and self._prepares)


class _RolledBack(Exception):
    """Ends a transaction that must leave nothing behind."""


class StatementTx(Tx):
    """Behind a pooler: each statement is a transaction of its own, so that none is held between them."""

    __slots__ = ("_settings",)

    def __init__(self, connection: psycopg.AsyncConnection[Row], settings: Mapping[str, str]) -> None:
        super().__init__(connection, prepares=False)
        self._settings = settings

    async def execute(self, sql: str, params: Params = None, *, prepare: bool = True) -> int:
        """The number of rows that the statement touched."""
        async with self.connection.transaction():
            await super().execute(*set_locally(self._settings))
            return await super().execute(sql, params)

    async def fetch(self, sql: str, params: Params = None, *, prepare: bool = True) -> list[Row]:
        """All rows."""
        async with self.connection.transaction():
            await super().execute(*set_locally(self._settings))
            return await super().fetch(sql, params)

    async def fetch_row(self, sql: str, params: Params = None, *, prepare: bool = True) -> Row | None:
        """The first row, or None."""
        rows = await self.fetch(sql, params)
        return rows[0] if rows else None


class Pool:
    """The connections of one process: most for work, a few in reserve for heartbeats, a few for queries.

    Work looks rows up by their keys, with plans that are made once. A query (`planned=True`) is planned each
    time, for its values, by PostgreSQL's planner with all its means.
    """

    def __init__(
        self, url: str, options: PoolOptions | None = None, owner: Callable[[], str] = lambda: SHARED
    ) -> None:
        """`owner` returns the tenant that the running task works for."""
        self._options = options or PoolOptions()
        self._owner = owner
        by_key = connect_arguments(url, self._options)
        planned = connect_arguments(url, self._options, planned=True)
        # The hosts of the URL are tried one after the other.
        self._open_seconds = 1.0 + database_url.hosts(url) * database_url.connect_timeout(
            url, self._options.connect_timeout
        )
        self.availability = Availability()
        self._reconnector = Reconnector(self.availability)
        self._work = self._make_pool(url, self._options.size, by_key)
        self._reserve = self._make_pool(url, self._options.reserve, by_key)
        self._queries = self._make_pool(url, self._options.queries, planned)
        self._used = {self._work: 0, self._reserve: 0, self._queries: 0}
        self._turns = {pool: self._make_turns(pool.max_size) for pool in self._used}

    def _make_pool(self, url: str, size: int, arguments: dict[str, Any]) -> ConnectionPool:
        return AsyncConnectionPool(
            url,
            connection_class=PatientConnection,
            kwargs=arguments,
            min_size=min(size, 2),
            max_size=size,
            timeout=self._options.acquire_timeout.total_seconds(),
            max_lifetime=3600.0,
            reconnect_timeout=RECONNECT_SECONDS,
            reconnect_failed=self._reconnector.begin,
            open=False,
        )

    def _make_turns(self, size: int) -> Turns:
        # What one tenant keeps busy leaves a part to all others.
        return Turns(size, max(1, size * 3 // 4), self._options.acquire_timeout.total_seconds())

    def usage(self) -> tuple[int, int]:
        """How many connections are in use, and how many there may be."""
        return sum(self._used.values()), sum(pool.max_size for pool in self._used)

    def usage_by_purpose(self) -> dict[str, tuple[int, int]]:
        """In use and at most, of the connections for work, heartbeats and queries."""
        names = {"work": self._work, "heartbeats": self._reserve, "queries": self._queries}
        return {name: (self._used[pool], pool.max_size) for name, pool in names.items()}

    async def open(self) -> None:
        """Connect; raises StorageUnavailable if the database does not answer in time."""
        try:
            for pool in self._used:
                await pool.open(wait=True, timeout=self._open_seconds)
        except PoolTimeout:
            await self.close()
            raise StorageUnavailable("not applied") from None

    async def close(self) -> None:
        """Close every connection."""
        await self._reconnector.stop()
        for pool in self._used:
            await pool.close()

    @asynccontextmanager
    async def transaction(self, *, reserve: bool = False, planned: bool = False) -> AsyncIterator[Tx]:
        """A transaction that commits at the end of the block and rolls back on any exception.

        Raises StorageUnavailable if the database is away (its `outcome` says whether the commit may have
        happened), Overloaded if no connection becomes free. Other errors of PostgreSQL are raised as they
        are.
        """
        async with self._connection(reserve, planned) as connection:
            try:
                yield await self._begin(connection, planned)
            except BaseException as error:
                await _roll_back(connection)
                raise _translated(error, "not applied") from error
            try:
                await connection.commit()
            except psycopg.Error as error:
                raise _translated(error, "unknown") from error

    @asynccontextmanager
    async def reading(self, *, planned: bool = False) -> AsyncIterator[Tx]:
        """Single statements that only read, each seeing what is committed when it begins."""
        try:
            async with self._autocommitting("not applied", planned=planned) as tx:
                yield tx
        except StorageUnavailable as error:
            # Advice about writes would be beside the point.
            raise StorageUnavailable(
                "not applied", retry_after=error.retry_after, message=f"{self._outage()}; {READ_REFUSED}"
            ) from error

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Tx]:
        """Like reading, for a connection that is kept for long and idles between its statements."""
        if not self._options.pooled:
            async with self.reading() as tx:
                yield tx
            return
        async with self._connection(reserve=False, planned=False) as connection:
            try:
                yield StatementTx(connection, server_settings(self._options, planned=False))
            except psycopg.Error as error:
                raise _translated(error, "not applied") from error

    @asynccontextmanager
    async def single(self, *, reserve: bool = False) -> AsyncIterator[Tx]:
        """For one statement that is a transaction by itself: one exchange with the server, not three."""
        async with self._autocommitting("unknown", reserve=reserve) as tx:
            yield tx

    @asynccontextmanager
    async def _autocommitting(
        self, outcome: str, *, reserve: bool = False, planned: bool = False
    ) -> AsyncIterator[Tx]:
        if self._options.pooled:
            async with self.transaction(reserve=reserve, planned=planned) as tx:
                yield tx
            return
        async with self._connection(reserve, planned) as connection:
            await connection.set_autocommit(True)
            try:
                yield Tx(connection)
            except psycopg.Error as error:
                raise _translated(error, outcome) from error
            finally:
                await _end_reading(connection)

    async def run(
        self,
        work: Callable[[Tx], Awaitable[T]],
        *,
        reserve: bool = False,
        attempts: int = 5,
        single: bool = False,
    ) -> T:
        """The result of `work` in a transaction, repeated after a deadlock or on a broken connection.

        The transaction is not interrupted when the caller is cancelled. With `single`, each statement of work
        commits by itself. Raises what `work` raises, and Overloaded after too many attempts or a lock that
        was not to be had.
        """
        task = asyncio.create_task(self._run(work, reserve, attempts, single))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Nobody awaits the transaction any more; asyncio logs an error that is never retrieved.
            task.add_done_callback(_retrieve)
            raise

    async def rehearse(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """The result of `work` in a transaction that is rolled back. Raises what `run` raises."""
        result: list[T] = []

        async def work_then_roll_back(tx: Tx) -> None:
            result[:] = [await work(tx)]
            raise _RolledBack

        with contextlib.suppress(_RolledBack):
            await self.run(work_then_roll_back)
        return result[0]

    async def _run(self, work: Callable[[Tx], Awaitable[T]], reserve: bool, attempts: int, single: bool) -> T:
        try:
            return await self.attempt(work, reserve=reserve, attempts=attempts, single=single)
        except _TIMEOUTS as error:
            raise overloaded("the time a lock or statement may take") from error

    async def attempt(
        self,
        work: Callable[[Tx], Awaitable[T]],
        *,
        reserve: bool = False,
        attempts: int = 5,
        single: bool = False,
    ) -> T:
        """Like run, but in the caller's task, and a lock or statement timeout is raised as it is.

        With `single`, work is one statement that commits by itself.
        """
        for attempt in range(attempts):
            try:
                begin = self.single if single else self.transaction
                async with begin(reserve=reserve) as tx:
                    return await work(tx)
            except _CONFLICTS:
                await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))
            except StorageUnavailable as error:
                if error.outcome != "not applied" or attempt + 1 == attempts:
                    raise
                await asyncio.sleep(random.uniform(0, 0.05 * 2**attempt))
        raise overloaded(f"{attempts} attempts at one transaction")

    async def _begin(self, connection: psycopg.AsyncConnection[Row], planned: bool) -> Tx:
        if not self._options.pooled:
            return Tx(connection)
        tx = Tx(connection, prepares=False)
        await tx.execute(*set_locally(server_settings(self._options, planned)))
        return tx

    @asynccontextmanager
    async def _connection(self, reserve: bool, planned: bool) -> AsyncIterator[psycopg.AsyncConnection[Row]]:
        pool = self._queries if planned else self._reserve if reserve else self._work
        turns, owner = self._turns[pool], self._owner()
        try:
            await turns.enter(owner)
        except NoTurn:
            raise self._no_connection(pool, turns.per_owner) from None
        try:
            connection = await self._connect(pool)
            try:
                yield connection
            finally:
                self._used[pool] -= 1
                await pool.putconn(connection)
        finally:
            turns.leave(owner)

    async def _connect(self, pool: ConnectionPool) -> psycopg.AsyncConnection[Row]:
        try:
            connection = await pool.getconn()
        except PoolTimeout:
            raise self._no_connection(pool, pool.max_size) from None
        self._used[pool] += 1
        return connection

    def _outage(self) -> str:
        seconds = self.availability.outage_seconds
        duration = f", for {seconds:.0f} s now" if seconds >= 1 else ""
        return f"the database cannot be reached{duration}"

    def _no_connection(self, pool: ConnectionPool, most: int) -> Overloaded | StorageUnavailable:
        """Connections that are all in use are a full house; connections that cannot be made, an outage."""
        if self._used[pool] >= most:
            return overloaded(f"{most} database connections in use")
        return StorageUnavailable("not applied")


# The hot statements take arrays whose content never changes the best plan. A generic plan may be made while a
# table is empty and must still be right when it is full: a few rows are looked up by their keys, whatever the
# statistics say.
_BY_KEY = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
# The values of a filter decide the plan of a query, which runs long enough that planning it each time pays.
_PLANNED = {"plan_cache_mode": "force_custom_plan"}


def connect_arguments(url: str, options: PoolOptions, *, planned: bool = False) -> dict[str, Any]:
    """What every connection is made with, beyond the URL; a pooler rejects server settings."""
    server = {} if options.pooled else server_settings(options, planned)
    own = {
        "application_name": "taskyard-taskdb",
        "connect_timeout": database_url.connect_timeout(url, options.connect_timeout),
        # A peer that vanished is noticed within 15 s, also while a statement waits for its answer.
        "keepalives_idle": 5,
        "keepalives_interval": 5,
        "keepalives_count": 2,
        "tcp_user_timeout": 15_000,
    }
    return database_url.arguments(url, own, server)


def server_settings(options: PoolOptions, planned: bool) -> dict[str, str]:
    """The settings of PostgreSQL that every transaction has."""
    return {
        "jit": "off",
        "timezone": "UTC",
        **(_PLANNED if planned else _BY_KEY),
        "statement_timeout": _milliseconds(options.statement_timeout),
        "lock_timeout": _milliseconds(options.lock_timeout),
        "idle_in_transaction_session_timeout": _milliseconds(options.idle_in_transaction_timeout),
    }


def set_locally(settings: Mapping[str, str]) -> tuple[str, list[str]]:
    """The statement that makes settings for one transaction, and its parameters."""
    calls = ", ".join("set_config(%s, %s, true)" for _ in settings)
    return f"SELECT {calls}", [text for item in settings.items() for text in item]


def _milliseconds(value: timedelta) -> str:
    return str(int(value.total_seconds() * 1000))


async def _end_reading(connection: psycopg.AsyncConnection[Row]) -> None:
    if connection.closed:
        return
    if connection.info.transaction_status == TransactionStatus.IDLE:
        await connection.set_autocommit(False)
    else:
        # Cancelled within a statement. An error here would hide the cancellation; the pool replaces it.
        await connection.close()


async def _roll_back(connection: psycopg.AsyncConnection[Row]) -> None:
    try:
        await connection.rollback()
    except psycopg.Error:
        # Whatever is wrong with the connection, the pool discards it.
        await connection.close()


def _translated(error: BaseException, outcome: str) -> BaseException:
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | pg.ReadOnlySqlTransaction):
        return error
    state = error.sqlstate
    if state is None or state.startswith(_UNAVAILABLE):
        return StorageUnavailable(outcome, retry_after=timedelta(seconds=1))
    return error


def overloaded(limit: str) -> Overloaded:
    """The error for work that the database has no room for now."""
    return Overloaded("the database", limit, retry_after=timedelta(seconds=1))


def _retrieve(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
