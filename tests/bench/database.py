"""A durable PostgreSQL for benchmarks: embedded, with fsync and synchronous_commit on."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psycopg

from taskyard_taskdb.storage.migrate import upgrade
from tests.harness.postgres import PostgresServer, postgres_server

DURABLE = tuple(
    word
    for setting in (
        "fsync=on",
        "synchronous_commit=on",
        "full_page_writes=on",
        "max_wal_size=4GB",
        "min_wal_size=2GB",
        "shared_buffers=1GB",
    )
    for word in ("-c", setting)
)
WAL_FILES = 120


@contextlib.contextmanager
def durable_server(directory: Path) -> Iterator[PostgresServer]:
    """A server that keeps what it acknowledged, with files of WAL to use again as one has after a while.

    On a new one a commit that needs the next file waits for 16 MB to be written first.
    """
    with postgres_server(directory, DURABLE) as server:
        with psycopg.connect(server.admin_url, autocommit=True) as connection:
            for _ in range(WAL_FILES):
                connection.execute("SELECT pg_logical_emit_message(false, 'bench', 'x'), pg_switch_wal()")
            connection.execute("CHECKPOINT")
        yield server


@contextlib.contextmanager
def migrated(server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh database with the current schema."""
    with server.database() as url:
        upgrade(url)
        yield url


def wal_position(connection: psycopg.Connection) -> int:
    """Bytes of WAL written so far."""
    row = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").fetchone()
    assert row is not None
    return int(row[0])
