"""What a broken network between taskdb and PostgreSQL may and may not do (FAULTS 22)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from taskyard.errors import Code, TaskyardError
from taskyard.v1 import task_pb2, task_service_pb2
from tests.harness.taskdb_process import CrashingTaskDb, crashing_taskdb
from tests.harness.tcp_proxy import TcpProxy, proxy_to

# A minute shows the same as a few seconds; TASKYARD_TEST_OUTAGE_SECONDS=60 waits for it.
OUTAGE_SECONDS = float(os.environ.get("TASKYARD_TEST_OUTAGE_SECONDS", "6"))
UNKNOWN = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)


def server_address(url: str) -> str:
    """Where the server of a database URL listens: the path of its socket, or host:port."""
    parts = urlsplit(url)
    if parts.hostname:
        return f"{parts.hostname}:{parts.port or 5432}"
    query = parse_qs(parts.query)
    return f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"


def through(url: str, proxy: TcpProxy) -> str:
    """The database URL, reached through the proxy."""
    parts = urlsplit(url)
    who = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{who}@{proxy.address}", query="").geturl()


@asynccontextmanager
async def taskdb_behind_a_proxy(url: str, directory: Path) -> AsyncIterator[tuple[CrashingTaskDb, TcpProxy]]:
    async with proxy_to(server_address(url)) as proxy, crashing_taskdb(url, directory) as taskdb:
        await asyncio.to_thread(taskdb.service.start, TASKYARD_DATABASE_URL=through(url, proxy))
        yield taskdb, proxy


def request(request_id: str) -> task_service_pb2.CreateTaskRequest:
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    task = task_pb2.Task(spec=task_pb2.TaskSpec(execution=execution))
    return task_service_pb2.CreateTaskRequest(parent="tenants/default", task=task, request_id=request_id)


async def create(taskdb: CrashingTaskDb, request_id: str, timeout: float) -> str | TaskyardError:
    """The name of the task, or the error that the caller got."""
    try:
        answer = await taskdb.tasks.CreateTask(request(request_id), timeout=timeout)
    except TaskyardError as error:
        return error
    name: str = answer.task.name
    return name


async def repeat(taskdb: CrashingTaskDb, request_id: str) -> str:
    """What a patient client gets that repeats a request with its id."""
    for _ in range(30):
        answer = await create(taskdb, request_id, 10)
        if isinstance(answer, str):
            return answer
        assert answer.code in UNKNOWN or answer.retryable, answer
    raise AssertionError(f"never answered: {answer}")


async def call_in_vain(taskdb: CrashingTaskDb) -> None:
    """Twenty creates whose callers all get an error with undetermined outcome."""
    calls = [asyncio.create_task(create(taskdb, f"cut-{n}", OUTAGE_SECONDS / 2)) for n in range(20)]
    responses = await asyncio.gather(*calls)
    assert all(isinstance(one, TaskyardError) and one.code in UNKNOWN for one in responses), responses


async def assert_converges(taskdb: CrashingTaskDb) -> None:
    """Repeats of the twenty name one task each."""
    first = await asyncio.gather(*(repeat(taskdb, f"cut-{n}") for n in range(20)))
    second = await asyncio.gather(*(repeat(taskdb, f"cut-{n}") for n in range(20)))
    assert first == second and len(set(first)) == 20
    assert await taskdb.value("SELECT count(*) FROM tasks") == 21


@pytest.mark.timeout(240)
@pytest.mark.parametrize("forth", [True, False], ids=["both", "back"])
async def test_fault_22_calls_cut_off_by_a_blackhole_are_undetermined_and_their_repeats_converge(
    database_url: str, tmp_path: Path, forth: bool
) -> None:
    async with taskdb_behind_a_proxy(database_url, tmp_path) as (taskdb, proxy):
        before = await repeat(taskdb, "before")
        proxy.blackhole(forth=forth)
        await call_in_vain(taskdb)
        await asyncio.sleep(OUTAGE_SECONDS / 2)
        proxy.heal()
        proxy.reset()
        await assert_converges(taskdb)
        assert await repeat(taskdb, "before") == before


@pytest.mark.timeout(240)
async def test_fault_22_repeating_a_commit_whose_response_was_lost_finds_its_result(
    database_url: str, tmp_path: Path
) -> None:
    async with taskdb_behind_a_proxy(database_url, tmp_path) as (taskdb, proxy):
        await repeat(taskdb, "before")
        # A few creates are one statement, which commits by itself; its parameters have their request ids.
        proxy.lose_answers_to(b"cut-")
        await call_in_vain(taskdb)
        # The commit has reached the database.
        await taskdb.until("SELECT count(*) > 1 FROM tasks")
        proxy.heal()
        proxy.reset()
        await assert_converges(taskdb)
