"""PostgreSQL crashes, cannot sync its log, or is an older state than before (FAULTS 27, 31, 65)."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.taskdb.tests.yard import started, succeeded
from taskyard.errors import LogEpochChanged
from taskyard.status import translated
from taskyard.v1 import task_service_pb2
from taskyard_taskdb.storage import migrate
from tests.harness.replication import Node, needs_replication, server_folder
from tests.harness.taskdb_process import CrashingTaskDb, crashing_taskdb
from tests.integration.test_database_network import create, repeat

STRACE = shutil.which("strace")
CALLERS = 6

pytestmark = [needs_replication, pytest.mark.timeout(240)]


@pytest.fixture
def node() -> Iterator[Node]:
    with server_folder("taskyard-faults-") as folder:
        made = Node(folder / "primary")
        try:
            made.initialise()
            migrate.upgrade(made.url())
            yield made
        finally:
            made.stop()


@asynccontextmanager
async def serving(node: Node, folder: Path) -> AsyncIterator[CrashingTaskDb]:
    async with crashing_taskdb(node.url(), folder) as taskdb:
        await asyncio.to_thread(taskdb.service.start)
        yield taskdb


async def acknowledged_over(
    taskdb: CrashingTaskDb, fault: Callable[[], object], creates: int = 60
) -> dict[str, str]:
    """The acknowledged creates by request id: before a fault, while it happens, and as many after it."""
    names: dict[str, str] = {}
    warm, over = asyncio.Event(), asyncio.Event()

    async def call(caller: int) -> None:
        after = count = 0
        while after < creates // CALLERS:
            count += 1
            request_id = f"{caller}-{count}"
            # Repeated with its id until it is acknowledged: unknown outcomes converge.
            names[request_id] = await repeat(taskdb, request_id)
            if len(names) >= creates:
                warm.set()
            after += over.is_set()

    callers = [asyncio.create_task(call(n)) for n in range(CALLERS)]
    async with asyncio.timeout(120):
        await warm.wait()
        await asyncio.to_thread(fault)
        over.set()
        await asyncio.gather(*callers)
    return names


async def assert_stored(taskdb: CrashingTaskDb, names: dict[str, str]) -> None:
    """Every acknowledged task exists once, and nothing else does."""
    rows = await taskdb.rows("SELECT 'tenants/default/tasks/' || task_id FROM tasks")
    assert sorted(row[0] for row in rows) == sorted(names.values())
    assert len(set(names.values())) == len(names)


@pytest.mark.seed("S2.1")
async def test_a_crash_of_postgresql_under_load_loses_nothing(node: Node, tmp_path: Path) -> None:
    async with serving(node, tmp_path) as taskdb:
        [name] = await taskdb.yard.create()
        runner, _ = await taskdb.yard.hello()
        [assignment] = (await taskdb.yard.claim(runner)).assignments
        await taskdb.yard.report(runner, started(assignment), succeeded(assignment))
        loop = asyncio.get_running_loop()

        def crash() -> None:
            node.kill()
            # By the thread of the test, which lasts: the server ends with the thread that started it.
            asyncio.run_coroutine_threadsafe(start(node), loop).result(60)

        names = await acknowledged_over(taskdb, crash)
        node.wait_for_log("was not properly shut down")
        await assert_stored(taskdb, {**names, "first": name})
        # A report that was acknowledged before the crash is repeated without another outcome.
        await taskdb.yard.report(runner, succeeded(assignment))
        ended = "SELECT count(*) FROM changes WHERE resource_kind = 1 AND phase >= 10"
        assert await taskdb.value(ended) == 1


async def start(node: Node) -> None:
    node.start()


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
async def test_a_log_that_cannot_be_synced_loses_nothing_acknowledged(node: Node, tmp_path: Path) -> None:
    node.set(fsync="on")
    node.wait_until("SELECT current_setting('fsync') = 'on'")
    async with serving(node, tmp_path) as taskdb:
        names = await acknowledged_over(taskdb, lambda: fail_sync(node))
        await assert_stored(taskdb, names)


def fail_sync(node: Node) -> None:
    """Let fdatasync fail with EIO until PostgreSQL has ended itself, as it does to recover from its log."""
    assert STRACE is not None and node.process is not None
    log = node.directory.with_suffix(".log")
    inject = "inject=fdatasync,fsync:error=EIO"
    tracer = subprocess.Popen(
        [STRACE, "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", inject]
        + [argument for pid in (node.process.pid, *node.children()) for argument in ("-p", str(pid))]
    )
    try:
        node.wait_for_log("PANIC:")
    finally:
        tracer.terminate()
        tracer.wait()
    assert "could not fdatasync" in log.read_text(errors="replace")


async def test_an_older_backup_that_was_restored_accepts_no_earlier_lease_or_token(
    node: Node, tmp_path: Path
) -> None:
    backup = Node(node.directory.with_name("backup"), port=node.port)
    async with serving(node, tmp_path) as taskdb:
        [name] = await taskdb.yard.create()
        runner, _ = await taskdb.yard.hello()
        [assignment] = (await taskdb.yard.claim(runner)).assignments
        await taskdb.yard.report(runner, started(assignment))
        backup.copy(node)
        # After the backup: the run ends, and another task is created.
        await taskdb.yard.report(runner, succeeded(assignment))
        await create(taskdb, "forgotten", 5)
        listed = await taskdb.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent="tenants/default"))
        await asyncio.to_thread(taskdb.service.terminate)
        node.stop()
        backup.start()
        argv = [sys.executable, "-m", "taskyard_taskdb", "restored", "--database-url", backup.url()]
        await asyncio.to_thread(subprocess.run, [*argv, "--grace", "0s"], timeout=60, check=True)
        await asyncio.to_thread(taskdb.service.start)
        try:
            assert (await taskdb.yard.report(runner, succeeded(assignment)))[0].error.code != 0
            assert (await taskdb.yard.task(name)).status.phase == 3
            again = task_service_pb2.WatchTasksRequest(
                parent="tenants/default", resume_token=listed.resume_token
            )
            with pytest.raises(LogEpochChanged), translated():
                await taskdb.tasks.WatchTasks(again).read()
            await asyncio.to_thread(taskdb.service.terminate)
        finally:
            backup.stop()
            # For the check of the tables at the end.
            node.start()
