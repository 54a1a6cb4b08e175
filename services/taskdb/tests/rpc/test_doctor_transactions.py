"""Doctor names transactions that are open for long, for which dead rows of the queue are kept (FAULTS 34)."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.rpc.test_doctor_races import repair_context
from taskyard_taskdb.storage.doctor.checks import CHECKS, find_old_transactions, repair_pages
from taskyard_taskdb.storage.doctor.repairs import RepairNotPossible


async def found(taskdb: RunningTaskDb, age: timedelta) -> list[str]:
    async with taskdb.pool.reading() as tx:
        return [message for _, message in await find_old_transactions(tx, age)]


async def test_a_reader_that_never_ends_its_transaction_is_named(taskdb: RunningTaskDb) -> None:
    check = next(check for check in CHECKS if check.name == "transactions")
    with psycopg.connect(taskdb.url, application_name="report-writer") as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT count(*) FROM tasks")
        (message,) = [one for one in await found(taskdb, timedelta(0)) if "report-writer" in one]
        assert f"pid {reader.info.backend_pid}" in message
        assert not await found(taskdb, timedelta(minutes=15))
        with pytest.raises(RepairNotPossible, match="pg_terminate_backend"):
            await repair_pages(check, repair_context(taskdb), [("system", message)])
    assert not [one for one in await found(taskdb, timedelta(0)) if "report-writer" in one]
