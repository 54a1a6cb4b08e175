"""A watch resumes exactly: after kills of taskdb, at another replica, after a crash of PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc
import psycopg

from taskyard.errors import TaskyardError
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions
from taskyard_taskdb.storage.migrate import upgrade
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.caller import Caller
from tests.harness.keys import insert_key
from tests.harness.logged_changes import LOGGED
from tests.harness.processes import Service
from tests.harness.taskdb_process import taskdb_service

PARENT = "tenants/default"
Versions = dict[str, list[int]]


class Watcher:
    """A client that resumes with its last token after every end of a stream, and drops what it has seen."""

    def __init__(self, choose: Callable[[], Caller]) -> None:
        self._choose = choose
        self.seen: Versions = {}
        self.ends = 0
        self._token = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            request = task_service_pb2.WatchTasksRequest(parent=PARENT, resume_token=self._token)
            call = self._choose().tasks.WatchTasks(request, timeout=None)
            with contextlib.suppress(grpc.RpcError):
                async for response in call:
                    self._token = response.resume_token
                    for event in response.events:
                        self._see(event.task.metadata.id, event.resource_version)
            self.ends += 1
            await asyncio.sleep(0.05)

    def _see(self, task_id: str, version: int) -> None:
        known = self.seen.setdefault(task_id, [])
        if not known or version > known[-1]:
            known.append(version)


class Writer:
    """Creates and cancels tasks, and repeats interrupted calls, until it is stopped."""

    def __init__(self, choose: Callable[[], Caller]) -> None:
        self._choose = choose
        self.done = 0
        self._stopping = False
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Write until it is stopped."""
        while not self._stopping:
            name = f"t{self.done}"
            await self._insist(self._create, name)
            await self._insist(self._cancel, name)
            self.done += 1
        self._stopped.set()

    async def stop(self) -> None:
        """Finish the task at hand and no other."""
        self._stopping = True
        await self._stopped.wait()

    async def reach(self, count: int) -> None:
        """Return once that many tasks are done."""
        async with asyncio.timeout(120):
            while self.done < count:  # noqa: ASYNC110  the writer has no other signal
                await asyncio.sleep(0.02)

    async def _insist(self, step: Callable[[str], Awaitable[None]], name: str) -> None:
        while True:
            with contextlib.suppress(TaskyardError):
                await step(name)
                return
            await asyncio.sleep(0.05)

    async def _create(self, task_id: str) -> None:
        execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
        request = task_service_pb2.CreateTaskRequest(
            parent=PARENT,
            task=task_pb2.Task(spec=task_pb2.TaskSpec(execution=execution)),
            task_id=task_id,
            request_id=task_id,
        )
        await self._choose().tasks.CreateTask(request)

    async def _cancel(self, task_id: str) -> None:
        await self._choose().tasks.CancelTask(
            task_service_pb2.CancelTaskRequest(name=f"{PARENT}/tasks/{task_id}")
        )


@contextlib.asynccontextmanager
async def working(choose: Callable[[], Caller]) -> AsyncIterator[tuple[Writer, Watcher]]:
    """A writer and a watcher at work."""
    writer, watcher = Writer(choose), Watcher(choose)
    watching = asyncio.create_task(watcher.run())
    while not watcher._token:  # noqa: ASYNC110  it begins with its first token
        await asyncio.sleep(0.02)
    writing = asyncio.create_task(writer.run())
    try:
        yield writer, watcher
    finally:
        for task in (writing, watching):
            task.cancel()
        await asyncio.gather(writing, watching, return_exceptions=True)


async def assert_complete(url: str, watcher: Watcher) -> None:
    """Everything that was committed comes, in the order of versions, and nothing else."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        rows = await connection.execute(
            f"SELECT resource_id, array_agg(version ORDER BY id) FROM {LOGGED}"
            " WHERE resource_kind = 1 GROUP BY resource_id"
        )
        committed: Versions = dict(await rows.fetchall())
    async with asyncio.timeout(60):
        while sum(map(len, watcher.seen.values())) < sum(map(len, committed.values())):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert watcher.seen == committed


@contextlib.asynccontextmanager
async def replicas(
    url: str, directory: Path, count: int
) -> AsyncIterator[tuple[list[Service], list[Caller]]]:
    """Running replicas of taskdb with a caller each."""
    key = (await insert_key(url, api_keys.TENANT)).text
    services = [taskdb_service(url, directory, name=f"taskdb-{n}") for n in range(count)]
    callers = [Caller(service.address, key) for service in services]
    try:
        for service in services:
            await asyncio.to_thread(service.start)
        yield services, callers
    finally:
        for caller in callers:
            await caller.close()
        for service in services:
            await asyncio.to_thread(service.stop)


async def test_a_watch_resumes_exactly_after_taskdb_was_killed(database_url: str, tmp_path: Path) -> None:
    async with (
        replicas(database_url, tmp_path, 1) as ([service], [caller]),
        working(lambda: caller) as (writer, watcher),
    ):
        for count in (15, 30):
            await writer.reach(count)
            await asyncio.to_thread(service.kill)
            await asyncio.to_thread(service.start)
        await writer.reach(45)
        await writer.stop()
        await assert_complete(database_url, watcher)
        assert watcher.ends >= 2


async def test_a_watch_resumes_at_another_replica(database_url: str, tmp_path: Path) -> None:
    async with replicas(database_url, tmp_path, 2) as (services, callers):
        current = [0]
        async with working(lambda: callers[current[0]]) as (writer, watcher):
            for count, victim in ((15, 0), (30, 1)):
                await writer.reach(count)
                current[0] = 1 - victim
                await asyncio.to_thread(services[victim].kill)
                if count == 15:
                    await asyncio.to_thread(services[victim].start)
            await writer.reach(45)
            await writer.stop()
            await assert_complete(database_url, watcher)
            assert watcher.ends >= 2


async def test_a_watch_resumes_exactly_after_postgresql_crashed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with DataDirectory(tmp_path / "data") as data:
        arguments = ("-c", "shared_buffers=64MB")
        postgres = EmbeddedPostgres(data, PostgresOptions(server_arguments=arguments), print)
        await postgres.start()
        hurry = asyncio.Event()
        hurry.set()
        try:
            url = postgres.url()
            await asyncio.to_thread(upgrade, url)
            async with (
                replicas(url, tmp_path, 1) as (_, [caller]),
                working(lambda: caller) as (writer, watcher),
            ):
                for count in (15, 30):
                    await writer.reach(count)
                    await postgres.stop(hurry)
                    await postgres.start()
                await writer.reach(45)
                await writer.stop()
                await assert_complete(url, watcher)
        finally:
            await postgres.stop(hurry)
