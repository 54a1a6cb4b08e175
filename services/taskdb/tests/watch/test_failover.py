"""Watches over a failover of PostgreSQL: they go on where the new log is proved to continue the old one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb, run_taskdb
from services.taskdb.tests.watch.log_rows import change
from taskyard.errors import LogEpochChanged, StorageUnavailable
from taskyard.status import translated
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.change_log.append import insert_changes
from taskyard_taskdb.storage.pool import Pool
from tests.harness.replication import Node, multi_host_url, needs_replication, primary_and_standby

PARENT = "tenants/default"
WAIT = 30.0

pytestmark = [needs_replication, pytest.mark.timeout(180)]
serving = asynccontextmanager(run_taskdb)


@pytest.fixture
def nodes() -> Iterator[tuple[Node, Node]]:
    with primary_and_standby() as made:
        migrate.upgrade(made[0].url())
        yield made


@pytest.fixture
async def taskdb(nodes: tuple[Node, Node]) -> AsyncIterator[RunningTaskDb]:
    async with serving(multi_host_url(*nodes)) as running:
        yield running


class Watch:
    """A watch of all tasks of the tenant, read one event after the other."""

    def __init__(self, caller: Any, token: str = "") -> None:
        request = task_service_pb2.WatchTasksRequest(parent=PARENT, resume_token=token)
        request.bookmark_interval.FromMilliseconds(1000)
        self.call = caller.tasks.WatchTasks(request)
        self.token = token

    async def read(self) -> list[str]:
        """The next response: the ids of the tasks in it."""
        async with asyncio.timeout(WAIT):
            with translated():
                response = await self.call.read()
        self.token = response.resume_token
        return [event.task.name.rpartition("/")[2] for event in response.events]

    async def until(self, task: str) -> list[str]:
        """All tasks up to this one."""
        seen: list[str] = []
        while task not in seen:
            seen += await self.read()
        return seen

    async def is_refused(self) -> None:
        """Return once it has ended because the log is another one."""
        with pytest.raises(LogEpochChanged):
            async with asyncio.timeout(WAIT):
                while True:
                    await self.read()


async def create(caller: Any, task_id: str) -> None:
    """Create a task, over as many errors of the database as it takes."""
    spec = task_pb2.TaskSpec(execution=task_pb2.Execution(command=task_pb2.CommandExecution(program="true")))
    request = task_service_pb2.CreateTaskRequest(
        parent=PARENT, task=task_pb2.Task(spec=spec), task_id=task_id, request_id=task_id
    )
    async with asyncio.timeout(WAIT):
        while True:
            try:
                await caller.tasks.CreateTask(request)
                return
            except Exception as error:
                if getattr(error, "reason", "") != "STORAGE_UNAVAILABLE":
                    raise
                await asyncio.sleep(0.1)


async def replayed(primary: Node, standby: Node) -> None:
    """Return once the standby has all that the primary has written."""
    [(end,)] = primary.execute("SELECT pg_current_wal_insert_lsn()")
    await asyncio.to_thread(standby.wait_until, f"SELECT pg_last_wal_replay_lsn() >= '{end}'")


async def detached(primary: Node, standby: Node) -> None:
    """Let the standby fall behind from now on, as an asynchronous one may."""
    await replayed(primary, standby)
    standby.set(primary_conninfo="")
    await asyncio.to_thread(primary.wait_until, "SELECT NOT EXISTS (SELECT FROM pg_stat_replication)")


async def failover(primary: Node, standby: Node) -> None:
    primary.kill()
    await asyncio.to_thread(standby.promote)


async def test_a_watch_goes_on_after_a_failover_that_lost_nothing(
    nodes: tuple[Node, Node], taskdb: RunningTaskDb
) -> None:
    caller = await taskdb.caller()
    watch = Watch(caller)
    await watch.read()
    for n in range(20):
        await create(caller, f"before-{n}")
    await watch.until("before-19")
    await replayed(*nodes)
    await failover(*nodes)
    await create(caller, "after")
    assert await watch.until("after") == ["after"]


async def test_any_replica_accepts_a_token_of_before_the_failover(
    nodes: tuple[Node, Node], taskdb: RunningTaskDb
) -> None:
    caller = await taskdb.caller()
    watch = Watch(caller)
    await watch.read()
    await create(caller, "before")
    await watch.until("before")
    token = watch.token
    await create(caller, "unseen")
    await watch.until("unseen")
    await replayed(*nodes)
    await failover(*nodes)
    await create(caller, "after")
    async with serving(nodes[1].url()) as fresh:
        # It has never seen the former timeline; the other replica has recorded the proof.
        resumed = Watch(await fresh.caller(), token)
        assert await resumed.until("after") == ["unseen", "after"]


async def test_a_token_of_a_lost_tail_is_refused_although_its_ids_are_used_again(
    nodes: tuple[Node, Node], taskdb: RunningTaskDb
) -> None:
    caller = await taskdb.caller()
    watch = Watch(caller)
    await watch.read()
    await create(caller, "kept")
    await watch.until("kept")
    kept_token = watch.token
    await detached(*nodes)
    for n in range(40):
        await create(caller, f"lost-{n}")
    await watch.until("lost-39")
    lost_token = watch.token
    [(lost_id,)] = nodes[0].execute("SELECT max(id) FROM changes")
    await failover(*nodes)
    # The new server draws these ids again.
    for n in range(80):
        await create(caller, f"other-{n}")
    [(reused,)] = nodes[1].execute(f"SELECT count(*) FROM changes WHERE id <= {lost_id}")
    [(kept,)] = nodes[1].execute("SELECT count(*) FROM changes WHERE resource_id = 'kept'")
    assert isinstance(reused, int) and isinstance(kept, int) and reused > kept + 1, (
        "the ids were not used again"
    )
    await watch.is_refused()
    with pytest.raises(LogEpochChanged):
        await Watch(caller, lost_token).read()
    # What the standby had received is proved.
    resumed = await Watch(caller, kept_token).until("other-79")
    assert resumed == [f"other-{n}" for n in range(80)]


async def test_a_lost_change_below_a_kept_one_is_not_overlooked(
    nodes: tuple[Node, Node], taskdb: RunningTaskDb
) -> None:
    """Ids are drawn before the commit: the standby may have a change and lack one with a lower id."""
    primary, standby = nodes
    caller = await taskdb.caller()
    watch = Watch(caller)
    await watch.read()
    pool: Pool = taskdb.pool
    async with pool.transaction() as tx:
        await insert_changes(tx, [change("lower", 1)])
        await create(caller, "higher")
        await detached(primary, standby)
    assert set(await watch.until("higher")) == {"lower", "higher"}
    await failover(primary, standby)
    assert standby.execute("SELECT resource_id FROM changes WHERE resource_id IN ('lower', 'higher')") == [
        ("higher",)
    ]
    await watch.is_refused()


async def test_followed_logs_and_waits_outlive_a_failover_that_lost_something(
    nodes: tuple[Node, Node], taskdb: RunningTaskDb
) -> None:
    caller = await taskdb.caller()
    await create(caller, "kept")
    name = f"{PARENT}/tasks/kept"

    async def follow_log() -> None:
        """As clients do: a stream that meets the outage is resumed with its token."""
        request = task_service_pb2.TailTaskLogsRequest(parent=name, follow=True)
        while True:
            try:
                with translated():
                    async for response in caller.tasks.TailTaskLogs(request):
                        request.resume_token = response.resume_token
                        if response.complete:
                            return
            except StorageUnavailable:
                await asyncio.sleep(0.1)

    logs = asyncio.create_task(follow_log())

    async def wait_for_change() -> task_service_pb2.WaitTaskResponse:
        """As clients do: a wait that meets the outage is repeated."""
        while True:
            try:
                request = task_service_pb2.WaitTaskRequest(name=name, after_resource_version=1)
                found: task_service_pb2.WaitTaskResponse = await caller.tasks.WaitTask(request)
                return found
            except StorageUnavailable:
                await asyncio.sleep(0.1)

    waiting = asyncio.create_task(wait_for_change())
    watch = Watch(caller)
    await watch.read()
    await detached(*nodes)
    await create(caller, "lost")
    await watch.until("lost")
    await failover(*nodes)
    await watch.is_refused()
    await caller.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name))
    async with asyncio.timeout(WAIT):
        assert (await waiting).task.status.phase == task_pb2.TASK_PHASE_CANCELLED
        await logs
