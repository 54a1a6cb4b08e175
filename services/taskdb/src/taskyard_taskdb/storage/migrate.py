"""Brings a database to this version's schema, and says how far a database is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from taskyard_taskdb.storage import database_url
from taskyard_taskdb.storage.housekeeping.partitions import missing_partitions

# It announces every connection.
logging.getLogger("alembic").setLevel(logging.WARNING)

# Replicas that start together migrate one after the other.
_MIGRATION_LOCK = 0x7461736B6D696772

# The revisions that development had before the first release. No later revision has one of these names.
_UNRELEASED = frozenset(f"000{number}" for number in range(1, 9))

_TENANTS = """
    INSERT INTO tenants (tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth,
    rate_limit_per_sec) VALUES ('default', 'Default', 4, 0, 0, 0), ('system', 'Shared task types', 4, 0, 0, 0)
    ON CONFLICT DO NOTHING
"""


Report = Callable[[str], None]
"""Takes a line of progress."""


class SchemaError(Exception):
    """Why the schema is not as this version needs it, in one line with the remedy."""


def upgrade(url: str, report: Report = lambda line: None) -> str:
    """Applies every missing migration and returns the revision; safe to repeat and to run concurrently.

    Also makes the tenants and partitions that every database has. Raises SchemaError for a database of a
    newer version or an unreleased revision, or one that cannot be reached.
    """
    with _connect(url, report) as connection:
        _refuse_foreign(connection)
        found = _revision(connection)
        if found != head():
            report(f"migrating the database from schema {found or 'none'} to {head()}")
        command.upgrade(_config(connection, report), "head")
        connection.exec_driver_sql(_TENANTS)
        _make_partitions(connection)
        connection.commit()
        return head()


def downgrade(url: str, revision: str) -> str:
    """Undoes migrations down to `revision` ("base" for all); raises SchemaError for an unknown one."""
    with _connect(url) as connection:
        _refuse_foreign(connection)
        try:
            command.downgrade(_config(connection), revision)
        except CommandError as error:
            raise SchemaError(f"cannot downgrade to {revision!r}: {error}; known are {_known()}") from None
        connection.commit()
        return _revision(connection) or "base"


def check(url: str) -> None:
    """Raises SchemaError unless the database has exactly this version's schema."""
    with _connect(url) as connection:
        _refuse_foreign(connection)
        found = _revision(connection)
    if found != head():
        raise SchemaError(
            f"the database has schema {found or 'none'}, this version needs {head()}; "
            "run `taskyard-taskdb migrate`"
        )


def head() -> str:
    """The newest revision this version knows."""
    found = _script().get_current_head()
    assert found is not None, "there is a first migration"
    return found


def _refuse_foreign(connection: sqlalchemy.Connection) -> None:
    found = _revision(connection)
    if found in _UNRELEASED:
        raise SchemaError(
            f"the database has schema {found}, which was never released and cannot be migrated to {head()}; "
            "create a new database and run `taskyard-taskdb migrate` on it, or give `taskyard up` a new "
            "--data-dir"
        )
    if found is not None and found not in _revisions():
        raise SchemaError(
            f"the database has schema {found}, newer than {head()}, the newest this version knows; "
            "upgrade taskyard-taskdb"
        )


def _revision(connection: sqlalchemy.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _revisions() -> set[str]:
    return {script.revision for script in _script().walk_revisions()}


def _known() -> str:
    return ", ".join(["base", *sorted(_revisions())])


def _script() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config(connection: sqlalchemy.Connection | None = None, report: Report = lambda line: None) -> Config:
    def applied(*, step: Any, **_: Any) -> None:
        report(f"applied {step.up_revision_id}")

    config = Config()
    config.attributes["on_version_apply"] = applied
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


@contextmanager
def _connect(url: str, report: Report = lambda line: None) -> Iterator[sqlalchemy.Connection]:
    own = {
        "connect_timeout": database_url.connect_timeout(url, timedelta(seconds=10)),
        "application_name": "taskyard-migrate",
    }
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(url, **database_url.arguments(url, own, {})),
        poolclass=sqlalchemy.NullPool,
    )
    try:
        with engine.connect() as connection:
            tried = connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({_MIGRATION_LOCK})")
            if not tried.scalar_one():
                report("waiting for the migration of another process")
                connection.exec_driver_sql(f"SELECT pg_advisory_lock({_MIGRATION_LOCK})")
            connection.commit()
            yield connection
    except sqlalchemy.exc.OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise SchemaError(f"the database cannot be used: {reason}; check the database URL") from None
    finally:
        engine.dispose()


def _make_partitions(connection: sqlalchemy.Connection) -> None:
    rows = connection.exec_driver_sql("SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')")
    existing = {name for (name,) in rows}
    for statements in missing_partitions(existing, datetime.now(UTC)):
        for statement in statements:
            connection.exec_driver_sql(statement)
