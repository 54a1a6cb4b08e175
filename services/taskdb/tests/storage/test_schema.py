"""The metadata describes the migrated tables to the last detail, and schema.sql is that description."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

from services.taskdb.tests.storage.catalogue import describe
from taskyard_standalone.binaries import find_binaries
from taskyard_taskdb.storage import schema
from tests.harness.postgres import PostgresServer

ROOT = Path(__file__).parents[4]
SCHEMA_SQL = ROOT / "services/taskdb/schema.sql"
MONTH = "*_[0-9][0-9][0-9][0-9]_[0-9][0-9]"


@pytest.fixture
def described_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database whose tables were made from the metadata."""
    with postgres_server.database() as url:
        engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
        with engine.begin() as connection:
            schema.metadata.create_all(connection)
        engine.dispose()
        yield url


def dump(url: str) -> list[str]:
    """What pg_dump writes of the schema, without the partitions of months and Alembic's table."""
    pg_dump = find_binaries().postgres.with_name("pg_dump")
    argv = [str(pg_dump), "--schema-only", "--no-owner", "--exclude-table=alembic_version"]
    argv += [f"--exclude-table={MONTH}", url]
    written = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout
    return [line for line in written.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


def test_metadata_and_migrations_make_the_same_dump(database_url: str, described_url: str) -> None:
    assert dump(described_url) == dump(database_url)


def test_metadata_and_migrations_make_the_same_catalogue(database_url: str, described_url: str) -> None:
    assert describe(described_url) == describe(database_url)


def test_every_table_is_described(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
            "AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'"
        ).fetchall()
    assert {name for (name,) in rows} == set(schema.metadata.tables)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE leases DROP CONSTRAINT lease_phase",
        "ALTER TABLE tasks SET (fillfactor = 46)",
        "ALTER TABLE tasks ALTER COLUMN retry_count SET DEFAULT 1",
        "ALTER TABLE tasks ALTER COLUMN task_type DROP NOT NULL",
        "ALTER TABLE checkpoints ALTER COLUMN data SET STORAGE EXTENDED",
        "ALTER SEQUENCE changes_id CACHE 2",
        "DROP INDEX tasks_held; CREATE INDEX tasks_held ON tasks (tenant_id, held_time)",
        "ALTER INDEX tasks_by_end SET (pages_per_range = 32)",
        "DROP TABLE changes_default",
        "ALTER FUNCTION oldest_live VOLATILE",
        "DROP VIEW change_log",
    ],
)
def test_comparison_detects_a_difference(database_url: str, described_url: str, change: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(change.encode())
    assert dump(described_url) != dump(database_url)
    assert describe(described_url) != describe(database_url)


def test_schema_sql_makes_the_same_tables(empty_database_url: str, database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute(SCHEMA_SQL.read_bytes())
    assert dump(empty_database_url) == dump(database_url)


def test_check_of_schema_sql_fails_when_the_file_is_stale(tmp_path: Path) -> None:
    page = tmp_path / SCHEMA_SQL.relative_to(ROOT)
    page.parent.mkdir(parents=True)
    argv = [sys.executable, str(ROOT / "tools/schema_sql.py"), "--check", "--root", str(tmp_path)]
    page.write_text(SCHEMA_SQL.read_text())
    assert subprocess.run(argv, timeout=60).returncode == 0
    page.write_text(SCHEMA_SQL.read_text().replace("fillfactor = 45", "fillfactor = 46"))
    stale = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert stale.returncode == 1 and "make generate" in stale.stderr
