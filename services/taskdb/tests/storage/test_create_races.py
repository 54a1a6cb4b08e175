"""Races of the create path over two replicas; a barrier is a lock that a third party holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from taskyard import errors
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.storage.connection import PatientConnection
from taskyard_taskdb.storage.create.creator import TaskCreator
from taskyard_taskdb.storage.create.new_task import Created, NewTask, Replayed
from taskyard_taskdb.storage.create.placement_classes import ClassCache
from taskyard_taskdb.storage.pool import Pool, PoolOptions
from taskyard_taskdb.storage.tenant.tenants import Tenant

MakeTask = Callable[..., task_service_pb2.CreateTaskRequest]


@asynccontextmanager
async def barrier(url: str, lock: str, waiting: int) -> AsyncIterator[Callable[[], Any]]:
    """Holds `lock` until `waiting` others wait for it; the block starts those, then calls the result."""
    holder = await psycopg.AsyncConnection.connect(url)
    watcher = await psycopg.AsyncConnection.connect(url, autocommit=True)
    await holder.execute(lock)

    async def release() -> None:
        while True:
            cursor = await watcher.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            row = await cursor.fetchone()
            if row is not None and row[0] >= waiting:
                break
        await holder.rollback()

    try:
        yield release
    finally:
        await holder.close()
        await watcher.close()


def new_tasks(requests: Sequence[task_service_pb2.CreateTaskRequest]) -> list[NewTask]:
    """The requests as they reach storage."""
    reader = SpecReader()
    return [
        reader.read(request, Tenant("default", False), Actor(ActorType.USER, "k"), None)
        for request in requests
    ]


@pytest.fixture
async def pools(database_url: str) -> AsyncIterator[list[Pool]]:
    """The pools of two replicas, with short lock timeouts."""
    made = [Pool(database_url, PoolOptions(size=4, reserve=1)) for _ in range(2)]
    for pool in made:
        await pool.open()
    yield made
    for pool in made:
        await pool.close()


@pytest.fixture
def creators(pools: list[Pool]) -> list[TaskCreator]:
    """The create paths of two replicas."""
    return [TaskCreator(pool, ClassCache(pool), lambda written: None) for pool in pools]


async def rows(pool: Pool, sql: str) -> list[tuple[Any, ...]]:
    """What the database holds."""
    async with pool.reading() as tx:
        return await tx.fetch(sql, prepare=False)


async def race(
    creators: list[TaskCreator], requests: Sequence[task_service_pb2.CreateTaskRequest]
) -> list[Any]:
    """The results of single creates, half of them by each replica, each in a transaction of its own."""
    tasks = new_tasks(requests)

    async def create(index: int) -> Any:
        return (await creators[index % 2].create_each([tasks[index]]))[0]

    return await asyncio.gather(*(create(index) for index in range(len(tasks))))


async def test_hundred_creates_with_one_request_id_make_one_task(
    database_url: str, pools: list[Pool], creators: list[TaskCreator], make_task: MakeTask
) -> None:
    async with barrier(database_url, "LOCK TABLE idempotency_keys IN SHARE MODE", 8) as release:
        results, _ = await asyncio.gather(
            race(creators, [make_task(request_id="r") for _ in range(100)]), release()
        )
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds == {"Created": 1, "Replayed": 99}
    assert len({r.task.task_id if isinstance(r, Created) else r.task_id for r in results}) == 1
    assert await rows(pools[0], "SELECT count(*) FROM tasks") == [(1,)]
    assert await rows(pools[0], "SELECT count(*) FROM changes") == [(1,)]


async def test_hundred_creates_with_one_request_id_and_two_bodies(
    database_url: str, pools: list[Pool], creators: list[TaskCreator], make_task: MakeTask
) -> None:
    requests = [make_task(request_id="r", priority=n % 4 // 2) for n in range(100)]
    async with barrier(database_url, "LOCK TABLE idempotency_keys IN SHARE MODE", 8) as release:
        results, _ = await asyncio.gather(race(creators, requests), release())
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds == {"Created": 1, "Replayed": 49, "RequestIdReused": 50}
    ((priority,),) = await rows(pools[0], "SELECT priority FROM tasks")
    losers = [n for n, result in enumerate(results) if isinstance(result, errors.RequestIdReused)]
    assert {n % 4 // 2 for n in losers} == {1 - priority}


async def test_one_flush_with_a_hundred_repeats_makes_one_task(
    pools: list[Pool], creators: list[TaskCreator], make_task: MakeTask
) -> None:
    requests = [make_task(request_id="r", priority=n % 2) for n in range(100)]
    results = await creators[0].create_each(new_tasks(requests))
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds == {"Created": 1, "Replayed": 49, "RequestIdReused": 50}
    assert await rows(pools[0], "SELECT count(*) FROM tasks") == [(1,)]


async def test_racing_creates_with_one_task_id_make_one_task(
    database_url: str, pools: list[Pool], creators: list[TaskCreator], make_task: MakeTask
) -> None:
    async with barrier(database_url, "LOCK TABLE tasks IN SHARE MODE", 8) as release:
        results, _ = await asyncio.gather(
            race(creators, [make_task(task_id="mine") for _ in range(20)]), release()
        )
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds == {"Created": 1, "AlreadyExists": 19}


async def test_poisoned_item_among_999_fails_alone(
    pools: list[Pool], creators: list[TaskCreator], make_task: MakeTask
) -> None:
    tasks = new_tasks([make_task() for _ in range(1000)])
    tasks[617] = tasks[617]._replace(creator_id="a\0b")
    results = await creators[0].create_each(tasks)
    failed = {index: result for index, result in enumerate(results) if not isinstance(result, Created)}
    assert list(failed) == [617]
    assert isinstance(failed[617], errors.FieldInvalid)
    for table in ("tasks", "queue", "changes"):
        assert await rows(pools[0], f"SELECT count(*) FROM {table}") == [(999,)]


async def test_item_whose_lock_times_out_fails_alone(database_url: str, make_task: MakeTask) -> None:
    pool = Pool(database_url, PoolOptions(lock_timeout=PoolOptions.lock_timeout / 20))
    await pool.open()
    creator = TaskCreator(pool, ClassCache(pool), lambda written: None)
    async with await psycopg.AsyncConnection.connect(database_url) as holder:
        await holder.execute(
            "INSERT INTO idempotency_keys (tenant_id, method, request_id, task_id, body_hash) "
            "VALUES ('default', 1, 'r7', 't', '')"
        )
        tasks = new_tasks([make_task(request_id=f"r{n}") for n in range(16)])
        results = await creator.create_each(tasks)
        await holder.rollback()
    assert [index for index, result in enumerate(results) if not isinstance(result, Created)] == [7]
    assert isinstance(results[7], errors.Overloaded) and results[7].retryable
    assert isinstance((await creator.create_each([tasks[7]]))[0], Created)
    await pool.close()


async def test_two_creators_and_a_freer_of_one_slot_leave_one_head(
    taskdb: Any, tenant: Any, creators: list[TaskCreator], make_task: MakeTask
) -> None:
    for turn in range(5):
        slot = f"s{turn}"
        head = await tenant.create(slot=slot)
        await taskdb.start(head.name)
        lock = f"SELECT FROM slots WHERE slot = '{slot}' FOR UPDATE"
        async with barrier(taskdb.url, lock, 3) as release:
            racing = asyncio.gather(
                race(creators, [make_task(slot=slot) for _ in range(2)]),
                taskdb.end(head.name),
            )
            await release()
            await racing
        queued = await taskdb.rows(
            "SELECT q.task_id FROM queue q JOIN tasks USING (task_id) WHERE slot = %s", slot
        )
        heads = await taskdb.rows("SELECT head_task_id FROM slots WHERE slot = %s", slot)
        waiting = await taskdb.rows(
            "SELECT pending_reason FROM tasks WHERE slot = %s AND end_time IS NULL ORDER BY 1", slot
        )
        assert queued == heads and len(queued) == 1
        assert waiting == [(1,), (4,)]


async def test_racing_replacements_leave_one_task(
    database_url: str, pools: list[Pool], creators: list[TaskCreator], make_task: MakeTask
) -> None:
    requests = [
        make_task(slot="s", admission=task_pb2.ADMISSION_POLICY_REPLACE, task_id=f"t{n}") for n in range(10)
    ]
    results = await race(creators, requests)
    assert all(isinstance(result, Created) for result in results), results
    live = await rows(pools[0], "SELECT task_id, pending_reason FROM tasks WHERE end_time IS NULL")
    queued = await rows(pools[0], "SELECT task_id FROM queue")
    heads = await rows(pools[0], "SELECT head_task_id FROM slots")
    assert len(live) == 1 and live[0][1] == 1
    assert queued == heads == [(live[0][0],)]


@pytest.mark.parametrize("request_id", ["", "r"])
@pytest.mark.parametrize("count", [1, 20])
async def test_storing_a_few_tasks_is_one_exchange(
    pools: list[Pool],
    creators: list[TaskCreator],
    make_task: MakeTask,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    request_id: str,
) -> None:
    def batch(name: str) -> list[NewTask]:
        ids = [request_id and f"{request_id}-{name}-{n}" for n in range(count)]
        return new_tasks([make_task(request_id=id) for id in ids])

    # Until the statement is prepared on every connection, and the class is stored.
    for n in range(8):
        await creators[0].create_each(batch(f"first{n}"))
    exchanges: list[object] = []
    wait = PatientConnection.wait

    def counted(connection: PatientConnection, gen: Any, *args: Any, **kwargs: Any) -> Any:
        # A change of the mode sends nothing.
        if gen.__name__ != "_set_autocommit_gen":
            exchanges.append(gen)
        return wait(connection, gen, *args, **kwargs)

    monkeypatch.setattr(PatientConnection, "wait", counted)
    results = await creators[0].create_each(batch("second"))
    assert all(isinstance(result, Created) for result in results), results
    assert len(exchanges) == 1
    stored = await rows(pools[1], "SELECT count(*) FROM idempotency_keys WHERE request_id LIKE '%second%'")
    assert stored == [(count if request_id else 0,)]


async def test_a_flush_with_repeats_stores_the_others(
    pools: list[Pool], creators: list[TaskCreator], make_task: MakeTask
) -> None:
    made = (await creators[0].create_each(new_tasks([make_task(request_id="old")])))[0]
    assert isinstance(made, Created)
    requests = [
        make_task(request_id="new", priority=3),
        make_task(request_id="old"),
        make_task(priority=4),
        make_task(request_id="old", priority=5),
        make_task(request_id="newer", priority=6),
    ]
    results = await creators[1].create_each(new_tasks(requests))
    kinds = [type(result).__name__ for result in results]
    assert kinds == ["Created", "Replayed", "Created", "RequestIdReused", "Created"]
    assert results[1] == Replayed("default", made.task.task_id)
    stored = await rows(pools[0], "SELECT priority, create_time FROM tasks ORDER BY create_time")
    times = [result.create_time for result in results if isinstance(result, Created)]
    assert [priority for priority, _ in stored] == [10, 3, 4, 6]
    assert [time for _, time in stored[1:]] == times
    changes = await rows(pools[0], "SELECT request_id FROM changes ORDER BY id")
    assert changes == [("old",), ("new",), (None,), ("newer",)]


async def test_a_repeat_that_cannot_be_read_leaves_the_others_stored(
    database_url: str, make_task: MakeTask
) -> None:
    """The answer to a repeat is read after the commit of the others, which no error can undo."""
    pool = Pool(database_url, PoolOptions(lock_timeout=PoolOptions.lock_timeout / 20))
    await pool.open()
    first = TaskCreator(pool, ClassCache(pool), lambda written: None)
    await first.create_each(new_tasks([make_task(request_id="old")]))
    with psycopg.connect(database_url) as holder:

        def lock(written: object) -> None:
            holder.execute("LOCK TABLE idempotency_keys IN ACCESS EXCLUSIVE MODE")

        creator = TaskCreator(pool, ClassCache(pool), lock)
        requests = [make_task(request_id="new"), make_task(request_id="old"), make_task()]
        results = await creator.create_each(new_tasks(requests))
        holder.rollback()
    assert [type(result).__name__ for result in results] == ["Created", "Overloaded", "Created"]
    assert await rows(pool, "SELECT count(*) FROM tasks") == [(3,)]
    await pool.close()
