"""The shared test database is real, isolated per test, and cloned from a template."""

from typing import TYPE_CHECKING

import psycopg

from tests.harness.postgres import migrated_template

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer


def _migrate(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE note (text text NOT NULL)")


def test_a_database_is_cloned_with_the_schema_and_without_the_rows_of_others(
    postgres_server: "PostgresServer",
) -> None:
    with migrated_template(postgres_server, _migrate) as template:
        with postgres_server.database(template) as one, psycopg.connect(one) as connection:
            connection.execute("INSERT INTO note VALUES ('mine')")
        with postgres_server.database(template) as other, psycopg.connect(other) as connection:
            assert connection.execute("SELECT count(*) FROM note").fetchone() == (0,)


async def test_an_empty_database_has_no_tables(empty_database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database_url) as connection:
        cursor = await connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert await cursor.fetchone() == (0,)


def test_a_test_database_has_the_current_schema_and_the_default_tenant(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT tenant_id FROM tenants ORDER BY tenant_id").fetchall()
    assert rows == [("default",), ("system",)]
