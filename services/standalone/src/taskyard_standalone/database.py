"""The database as Taskyard meets it, embedded or given by URL: reachable, new enough, and which one it is."""

import re
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict

from taskyard_standalone.errors import DatabaseError

_OLDEST = 15
_CONNECT_SECONDS = 10
_SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class Database:
    """`identity` changes when the database is made anew, even under the same name on the same server."""

    server_version: str
    identity: str


async def inspect(url: str) -> Database:
    """What is behind `url`; raises DatabaseError if that cannot be used. Messages hold no password."""
    place = _describe(url)
    try:
        async with await psycopg.AsyncConnection.connect(url, connect_timeout=_CONNECT_SECONDS) as connection:
            cursor = await connection.execute(
                "SELECT current_setting('server_version'),"
                " (SELECT system_identifier FROM pg_control_system()),"
                " (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            row = await cursor.fetchone()
    except psycopg.Error as error:
        raise DatabaseError(
            f"cannot use the database {place}: {_reason(error)};"
            " check that it runs and --database-url is right"
        ) from error
    assert row is not None
    version, system, oid = row
    if int(version.split(".")[0]) < _OLDEST:
        raise DatabaseError(
            f"the database {place} is PostgreSQL {version}: Taskyard needs {_OLDEST} or newer"
        )
    return Database(version.split()[0], f"{system}/{oid}")


def _describe(url: str) -> str:
    """The database's address without its password; raises DatabaseError for what is no URL."""
    if not url.startswith(_SCHEMES):
        raise DatabaseError("--database-url must have the form postgresql://user:password@host:port/database")
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # The reason quotes at most the part that is malformed; a password in it is cut off with the rest.
        raise DatabaseError(
            f"--database-url is not a valid URL: {_reason(error).partition(':')[0]}"
        ) from None
    host, port = parts.get("host") or "localhost", parts.get("port") or 5432
    return f"{parts.get('dbname') or ''} at {host}:{port}".strip()


def _reason(error: psycopg.Error) -> str:
    # What follows the first line is advice of libpq's, which ours replaces.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return re.sub(r"^(connection failed:\s*)?connection to server at .*? failed:\s*(FATAL:\s*)?", "", text)
