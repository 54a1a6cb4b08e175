"""Fixtures that the tests of every package share: a PostgreSQL server per session, a database per test."""

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

# A shell that starts something in the background lets it ignore Ctrl-C, and all that it starts in turn: what
# tests interrupt would not notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = (
    "tests.harness.allowed_skips",
    "tests.harness.executor_table",
    "tests.harness.guard",
    "tests.harness.json_log",
)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator["PostgresServer"]:
    """A real PostgreSQL, embedded or the one of TASKYARD_TEST_DATABASE_URL."""
    # Imported here, so that tests without a database run without its packages.
    from tests.harness.postgres import postgres_server, server_folder

    with server_folder() as folder, postgres_server(folder) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres_server: "PostgresServer") -> Iterator[str]:
    """The name of a database with the current schema, to clone from."""
    from taskyard_taskdb.storage.migrate import upgrade
    from tests.harness.postgres import migrated_template

    with migrated_template(postgres_server, upgrade) as name:
        yield name


@pytest.fixture
def database_url(postgres_server: "PostgresServer", migrated_template: str) -> Iterator[str]:
    """A database with the current schema for this test alone."""
    with postgres_server.database(migrated_template) as url:
        yield url


@pytest.fixture
def empty_database_url(postgres_server: "PostgresServer") -> Iterator[str]:
    """A database without any table for this test alone."""
    with postgres_server.database() as url:
        yield url
