"""Migrations, partitions, the commands that run them, and the statements on the migrated schema."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from taskyard_standalone.binaries import find_binaries
from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.arrays import copy_data
from taskyard_taskdb.storage.housekeeping.partitions import ensure_partitions
from taskyard_taskdb.storage.numbered import convert, numbered
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.statements import StatementError, parse, statement, statements


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    """What a query gives."""
    with psycopg.connect(url) as connection:
        return connection.execute(sql.SQL(query)).fetchall()


def command(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs taskyard-taskdb."""
    environment = {**os.environ, "TASKYARD_DATABASE_URL": url, "TASKYARD_TASKDB_LISTEN": "127.0.0.1:0"}
    argv = [sys.executable, "-m", "taskyard_taskdb", *arguments]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)


def test_upgrade_may_be_repeated_and_makes_the_first_tenants(empty_database_url: str) -> None:
    for _ in range(2):
        assert migrate.upgrade(empty_database_url) == migrate.head()
    migrate.check(empty_database_url)
    assert rows(empty_database_url, "SELECT tenant_id FROM tenants ORDER BY 1") == [("default",), ("system",)]


def test_replicas_that_start_together_migrate_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(migrate.upgrade, [empty_database_url] * 4))
    assert made == [migrate.head()] * 4


def test_a_migration_reports_its_progress_and_what_it_waits_for(empty_database_url: str) -> None:
    argv = [sys.executable, "-m", "taskyard_taskdb", "migrate"]
    environment = {**os.environ, "TASKYARD_DATABASE_URL": empty_database_url}
    with psycopg.connect(empty_database_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (migrate._MIGRATION_LOCK,))
        process = subprocess.Popen(
            argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        assert process.stderr.readline() == "taskyard-taskdb: waiting for the migration of another process\n"
    out, err = process.communicate(timeout=60)
    lines = err.splitlines()
    assert lines[0] == f"taskyard-taskdb: migrating the database from schema none to {migrate.head()}"
    assert lines[1] == "taskyard-taskdb: applied s0001"
    assert lines[-1] == f"taskyard-taskdb: applied {migrate.head()}"
    assert (process.returncode, out) == (0, f"schema {migrate.head()}\n")
    again = command(empty_database_url, "migrate")
    assert (again.stdout, again.stderr) == (out, "")


async def test_upgrade_works_inside_a_running_event_loop(empty_database_url: str) -> None:
    assert migrate.upgrade(empty_database_url) == migrate.head()


def test_downgrade_leaves_nothing_behind(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    migrate.downgrade(empty_database_url, "base")
    left = rows(
        empty_database_url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    )
    assert {name for (name,) in left} == {"alembic_version", "alembic_version_pkc"}
    assert migrate.upgrade(empty_database_url) == migrate.head()


def dump(url: str) -> list[str]:
    """The schema and the rows that every database has, as pg_dump writes them, without times."""
    pg_dump = find_binaries().postgres.with_name("pg_dump")
    argv = [str(pg_dump), "--no-owner", "--inserts", "--exclude-table-data=tenants", url]
    argv += ["--exclude-table-data=coordinator_state"]
    written = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout
    return [
        line for line in written.splitlines() if not line.startswith(("--", "\\restrict", "\\unrestrict"))
    ]


@pytest.mark.seed("S2.150")
def test_upgrade_downgrade_upgrade_leaves_an_identical_dump(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    before = dump(empty_database_url)
    assert any(line.startswith("CREATE TABLE public.tasks") for line in before)
    migrate.downgrade(empty_database_url, "base")
    assert dump(empty_database_url) != before
    migrate.upgrade(empty_database_url)
    assert dump(empty_database_url) == before


def test_database_without_or_with_a_newer_schema_is_refused_in_one_line(empty_database_url: str) -> None:
    with pytest.raises(migrate.SchemaError, match="schema none"):
        migrate.check(empty_database_url)
    served = command(empty_database_url, "serve")
    assert served.returncode == 1
    assert served.stderr.splitlines()[-1].endswith("run `taskyard-taskdb migrate`")
    assert command(empty_database_url, "migrate").stdout == f"schema {migrate.head()}\n"
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    refused = command(empty_database_url, "migrate")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert len(refused.stderr.splitlines()) == 1 and "9999" in refused.stderr


@pytest.mark.parametrize("revision", [f"000{number}" for number in range(1, 9)])
def test_database_of_an_unreleased_revision_is_refused(empty_database_url: str, revision: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)")
        connection.execute("INSERT INTO alembic_version VALUES (%s)", (revision,))
    for act in (migrate.upgrade, migrate.check, lambda url: migrate.downgrade(url, "base")):
        with pytest.raises(migrate.SchemaError) as refused:
            act(empty_database_url)
        message = str(refused.value)
        assert f"schema {revision}" in message and "never released" in message
        assert "new database" in message and "newer" not in message
    left = rows(
        empty_database_url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    )
    assert {name for (name,) in left} == {"alembic_version", "alembic_version_pkey"}


def test_commands_refuse_an_unreleased_revision_in_one_line(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0008'")
    for arguments in (("migrate",), ("serve",)):
        refused = command(empty_database_url, *arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "never released" in refused.stderr.splitlines()[-1]
    assert len(command(empty_database_url, "migrate").stderr.splitlines()) == 1


def test_unreachable_database_and_unknown_revision_are_one_line_errors(empty_database_url: str) -> None:
    away = command("postgresql://nobody@127.0.0.1:1/none", "migrate")
    assert away.returncode == 1 and len(away.stderr.splitlines()) == 1
    migrate.upgrade(empty_database_url)
    unknown = command(empty_database_url, "migrate", "--downgrade", "7777")
    assert unknown.returncode == 1 and unknown.stderr.endswith(f", {migrate.head()}\n")
    assert command(empty_database_url, "migrate", "--downgrade", "base").stdout == "schema base\n"


def test_a_key_file_is_its_owners_alone_whatever_the_umask(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "admin.key"
    before = os.umask(0)
    try:
        assert command(database_url, "keys", "create", "--kind", "admin", "--to", str(file)).stdout == ""
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and file.read_text().startswith("ty_")
    again = command(database_url, "keys", "create", "--kind", "admin", "--to", str(file))
    assert again.returncode == 1 and "name a new file" in again.stderr


def test_keys_are_printed_once_and_stored_hashed(database_url: str) -> None:
    made = command(
        database_url, "keys", "create", "--kind", "tenant", "--tenant", "default", "--id", "mykey1"
    )
    key = made.stdout.strip()
    assert re.fullmatch(r"ty_mykey1_[0-9a-f]{64}", key)
    stored = rows(database_url, "SELECT kind, tenant_id, secret_hash FROM api_keys")
    assert stored[0][:2] == (1, "default") and key.encode() not in bytes(stored[0][2])
    for arguments, message in (
        (("--kind", "tenant", "--tenant", "default", "--id", "mykey1"), "exists already"),
        (("--kind", "tenant", "--tenant", "nobody"), "does not exist"),
        (("--kind", "tenant"), "--tenant"),
        (("--kind", "wizard"), "one of admin"),
        (("--kind", "admin", "--id", "UP"), "4 to 32"),
    ):
        refused = command(database_url, "keys", "create", *arguments)
        assert refused.returncode != 0 and message in refused.stderr and not refused.stdout
        assert len(refused.stderr.splitlines()) == 1


def test_a_set_of_keys_is_created_completely_or_not_at_all(database_url: str) -> None:
    made = command(database_url, "keys", "create-set", "--tenant", "default", "--suffix", "1")
    keys = tomllib.loads(made.stdout)
    assert list(keys) == ["admin", "tenant", "scheduler", "runner"]
    assert all(key.startswith(f"ty_up{kind}1_") for kind, key in keys.items())
    for tenant, suffix in (("default", "1"), ("nobody", "2"), ("default", "A-B")):
        refused = command(database_url, "keys", "create-set", "--tenant", tenant, "--suffix", suffix)
        assert refused.returncode != 0 and not refused.stdout
    assert rows(database_url, "SELECT count(*) FROM api_keys WHERE key_id LIKE 'up%'") == [(4,)]


async def test_partitions_are_created_ahead_and_receive_rows(database_url: str) -> None:
    pool = Pool(database_url)
    await pool.open()
    later = datetime(2031, 11, 15, tzinfo=UTC)
    async with pool.transaction() as tx:
        assert await ensure_partitions(tx, later, months=2) == 6
        assert await ensure_partitions(tx, later, months=2) == 0
        await tx.execute(
            "INSERT INTO changes (time, event, actor_type, tenant_id, resource_id) "
            "VALUES (%s, 1, 1, 't', 'r')",
            (datetime(2032, 1, 1, tzinfo=UTC),),
        )
        found = await tx.fetch("SELECT tableoid::regclass::text FROM changes")
    await pool.close()
    assert found == [("changes_2032_01",)]


def test_every_statement_can_be_prepared(database_url: str) -> None:
    broken = []
    with psycopg.connect(database_url, autocommit=True) as connection:
        for name, text in statements().items():
            if text.startswith("COPY "):
                # It cannot be prepared, but it can be given no row.
                with connection.cursor().copy(sql.SQL(text)) as copy:
                    copy.write(copy_data([]))
                continue
            try:
                connection.execute(sql.SQL(f"PREPARE {name} AS {convert(text)[0].decode()}"))
            except psycopg.Error as error:
                broken.append(f"{name}: {error}")
    assert not broken


def test_parameters_are_numbered_in_the_order_of_their_first_use() -> None:
    text = "SELECT %(a)s, %(b)s, %(a)s WHERE x LIKE 'y%%'"
    assert numbered(text, {"b": 2, "a": 1}) == (b"SELECT $1, $2, $1 WHERE x LIKE 'y%'", [1, 2])
    assert numbered("SELECT %s, %s", (3, 4)) == (b"SELECT $1, $2", (3, 4))
    assert numbered("SELECT 5 % 3", None) == (b"SELECT 5 % 3", None)
    # psycopg finds what is prepared by the text, whose hash is computed once.
    assert numbered(text, {"b": 2, "a": 1})[0] is numbered(text, {"b": 3, "a": 4})[0]


def test_statement_files_must_document_their_locks() -> None:
    assert parse("-- name: a\n-- Locks nothing.\nSELECT 1;\n", "x.sql") == {"a": "SELECT 1"}
    with pytest.raises(StatementError, match="'a'"):
        parse("-- name: a\nSELECT 1\n", "x.sql")
    with pytest.raises(StatementError, match="nowhere"):
        statement("nowhere")
