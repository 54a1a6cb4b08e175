"""Creates of concurrent calls share transactions, but no tenant waits for what another's tasks cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from taskyard.errors import Overloaded
from taskyard.v1 import common_pb2, task_service_pb2

MakeTask = Callable[..., task_service_pb2.CreateTaskRequest]


@asynccontextmanager
async def locked_slot(url: str) -> AsyncIterator[None]:
    """Another session that has locked the slot "s" of the tenant "default"."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("SELECT FROM slots WHERE tenant_id = 'default' AND slot = 's' FOR UPDATE")
        yield
        await connection.rollback()


@pytest.fixture
async def tenants(taskdb: Any) -> tuple[Any, Any]:
    """Callers for two tenants whose placement class is stored."""
    await taskdb.add_tenant("acme")
    callers = await taskdb.caller(), await taskdb.caller(tenant_id="acme")
    await callers[0].create(slot="s")
    await callers[0].create()
    await callers[1].create(parent="tenants/acme")
    return callers


async def until_waiting(taskdb: Any) -> None:
    """Until a statement waits for the lock."""
    async with asyncio.timeout(10):
        while not await taskdb.rows("SELECT 1 FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_while_a_batch_waits_for_a_lock_creates_of_others_do_not(
    taskdb: Any, tenants: tuple[Any, Any], make_task: MakeTask, database_url: str
) -> None:
    hostile, victim = tenants
    async with locked_slot(database_url):
        batch = task_service_pb2.BatchCreateTasksRequest(
            parent="tenants/default",
            requests=[make_task(slot="s")],
            mode=common_pb2.BATCH_MODE_PER_ITEM,
        )
        stored = asyncio.ensure_future(hostile.tasks.BatchCreateTasks(batch))
        await until_waiting(taskdb)
        single = asyncio.create_task(hostile.create(slot="s"))
        await asyncio.sleep(0.1)
        await victim.create(parent="tenants/acme")
        assert not single.done() and not stored.done()
    await asyncio.wait([stored, single])


async def test_a_tenant_whose_task_had_to_be_left_out_is_apart_for_a_while(
    taskdb: Any, tenants: tuple[Any, Any], database_url: str
) -> None:
    hostile, victim = tenants
    async with locked_slot(database_url):
        with pytest.raises(Overloaded):
            await hostile.create(slot="s")
        single = asyncio.create_task(hostile.create(slot="s"))
        await until_waiting(taskdb)
        await victim.create(parent="tenants/acme")
        assert not single.done()
    await asyncio.wait([single])


async def test_a_large_task_is_stored_beside_the_flush_of_small_ones(
    taskdb: Any, tenants: tuple[Any, Any]
) -> None:
    queues = taskdb.taskdb.create._queues
    queues._own.clear()  # their first tasks had no class yet
    await asyncio.gather(
        tenants[0].create(payload=common_pb2.Payload(raw=b'"' + b"x" * 100_000 + b'"')),
        tenants[1].create(parent="tenants/acme"),
    )
    assert set(queues._own) == {"default"}
