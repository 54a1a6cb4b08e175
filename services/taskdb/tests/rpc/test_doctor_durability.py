"""Doctor reports settings of PostgreSQL with which acknowledged writes can be lost."""

from __future__ import annotations

from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from taskyard_taskdb.storage.doctor.checks import CHECKS, run_check
from taskyard_taskdb.storage.pool import Pool, PoolOptions


@pytest.mark.parametrize(("value", "problems"), [("on", 0), ("off", 1), ("local", 0)])
async def test_doctor_warns_when_a_commit_is_not_durable(
    database_url: str, value: str, problems: int
) -> None:
    name = sql.Identifier(urlsplit(database_url).path.lstrip("/"))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = {}").format(name, value))
    pool = Pool(database_url, PoolOptions(size=1, reserve=1, queries=1))
    await pool.open()
    try:
        check = next(check for check in CHECKS if check.name == "durability")
        found = await run_check(pool, check)
    finally:
        await pool.close()
    assert found.remaining == problems
    assert all("synchronous_commit is off" in example for example in found.examples)
