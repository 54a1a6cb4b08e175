"""Doctor, metrics and `status` report a PostgreSQL that can lose acknowledged writes, or that blocks them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from services.taskdb.tests.conftest import make_key, run_taskdb
from taskyard_taskdb.metrics import HousekeepingMetrics
from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.doctor.checks import CHECKS, run_check
from taskyard_taskdb.storage.pool import Pool, PoolOptions
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.replication import Node, needs_replication, primary_and_standby

serving = asynccontextmanager(run_taskdb)


async def found_problems(url: str) -> tuple[str, ...]:
    pool = Pool(url, PoolOptions(size=1, reserve=1, queries=1))
    await pool.open()
    try:
        check = next(check for check in CHECKS if check.name == "durability")
        return (await run_check(pool, check)).examples
    finally:
        await pool.close()


@pytest.mark.parametrize(("value", "problems"), [("on", 0), ("off", 1), ("local", 0)])
async def test_doctor_warns_when_a_commit_is_not_durable(
    database_url: str, value: str, problems: int
) -> None:
    name = sql.Identifier(urlsplit(database_url).path.lstrip("/"))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = {}").format(name, value))
    found = await found_problems(database_url)
    assert len(found) == problems
    assert all("synchronous_commit is off" in example for example in found)


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    with primary_and_standby() as made:
        migrate.upgrade(made[0].url())
        yield made


@pytest.fixture
def primary(nodes: tuple[Node, Node]) -> Iterator[Node]:
    """A primary with an asynchronous standby, whose settings a test may change."""
    yield nodes[0]
    nodes[0].execute("ALTER SYSTEM RESET synchronous_standby_names", "postgres")
    nodes[0].execute("ALTER SYSTEM RESET synchronous_commit", "postgres")
    nodes[0].execute("SELECT pg_reload_conf()", "postgres")
    nodes[0].wait_until("SELECT current_setting('synchronous_standby_names') = ''")


@needs_replication
@pytest.mark.timeout(120)
@pytest.mark.parametrize("role", ["taskyard", "postgres"])
@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "synchronous_standby_names is empty"),
        ({"synchronous_standby_names": "standby"}, ""),
        ({"synchronous_standby_names": "ANY 1 (standby)"}, ""),
        (
            {"synchronous_standby_names": "standby", "synchronous_commit": "local"},
            "synchronous_commit is local",
        ),
        ({"synchronous_standby_names": "standby", "synchronous_commit": "off"}, "synchronous_commit is off"),
    ],
)
async def test_doctor_sees_how_the_standby_is_attached(
    primary: Node, role: str, settings: dict[str, str], problem: str
) -> None:
    primary.set(**settings)
    state = "quorum" if "ANY" in str(settings) else "sync" if settings else "async"
    await asyncio.to_thread(
        primary.wait_until, f"SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = '{state}')"
    )
    found = await found_problems(primary.url(role))
    assert len(found) == (1 if problem else 0)
    assert all(problem in example for example in found)


@needs_replication
@pytest.mark.timeout(120)
async def test_doctor_warns_when_writes_wait_for_a_standby_that_is_not_there(primary: Node) -> None:
    primary.set(synchronous_standby_names="elsewhere")
    await asyncio.to_thread(
        primary.wait_until, "SELECT current_setting('synchronous_standby_names') = 'elsewhere'"
    )
    [problem] = await found_problems(primary.url("postgres"))
    assert "elsewhere and no such standby is connected" in problem


@needs_replication
@pytest.mark.timeout(120)
async def test_metrics_and_status_show_an_asynchronous_standby(primary: Node) -> None:
    async with serving(primary.url()) as running:
        measured = HousekeepingMetrics()
        async with running.pool.reading() as tx:
            await measured.read(tx)
        assert measured._findings == {"durability": 1}
        keys = [
            await make_key(running.pool, api_keys.ADMIN),
            await make_key(running.pool, api_keys.TENANT, "default"),
        ]
        admin, tenant = [await asyncio.to_thread(status, running.address, key) for key in keys]
    assert "warning: synchronous_standby_names is empty" in admin
    assert "warning" not in tenant


def status(address: str, key: str) -> str:
    """What `taskyard status` prints as warnings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TASKYARD_")}
    environment = {**clean, "TASKYARD_ADDRESS": address, "TASKYARD_KEY": key}
    argv = [str(Path(sys.executable).with_name("taskyard")), "status"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr
