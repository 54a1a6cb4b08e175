"""taskdb as a process of its own over a test's database: killed at failpoints, started on the same port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from services.taskdb.tests.yard import Yard
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.caller import Caller
from tests.harness.invariants import assert_invariants
from tests.harness.keys import insert_key
from tests.harness.processes import Service, free_port

MODULE = "taskyard_taskdb"
# Waits for changes of the database or log by another process: half a minute of short waits.
POLL_SECONDS = 0.05
POLLS = 600


def taskdb_service(url: str, directory: Path, *flags: str, name: str = "taskdb") -> Service:
    """A taskdb that is not started yet, with a port that it keeps."""
    port = free_port()
    arguments = ("serve", "--listen", f"127.0.0.1:{port}", *flags)
    return Service(MODULE, arguments, port, directory / f"{name}.log", {"TASKYARD_DATABASE_URL": url})


@contextmanager
def taskdb_process(url: str, directory: Path, *flags: str) -> Iterator[Service]:
    """A running taskdb."""
    service = taskdb_service(url, directory, *flags)
    try:
        yield service.start()
    finally:
        service.stop()


class CrashingTaskDb:
    """One taskdb that tests kill and start again. `yard` plays a scheduler with its runners and a user."""

    def __init__(self, url: str, service: Service, callers: dict[int, Caller], runner_key_id: str) -> None:
        self.url = url
        self.service = service
        self._callers = callers
        self.yard = Yard(callers[api_keys.SCHEDULER], callers[api_keys.TENANT], runner_key_id)
        self.tasks = callers[api_keys.TENANT].tasks
        self.leases = callers[api_keys.SCHEDULER].leases

    async def start(self, failpoints: str = "") -> None:
        """Starts it, with these failpoints set for this life only, and waits until it serves."""
        await asyncio.to_thread(self.service.start, TASKYARD_FAILPOINTS=failpoints)

    async def killed(self) -> None:
        """Returns once a failpoint has killed it; fails if it ends otherwise or lives on."""
        await asyncio.to_thread(self.service.wait_killed)

    async def expire_leadership(self) -> None:
        """Expire the term of the killed leader at once, instead of after its ten seconds."""
        async with await psycopg.AsyncConnection.connect(self.url) as connection:
            await connection.execute("UPDATE coordinator_state SET expires_at = clock_timestamp()")

    async def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """What the database holds."""
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            return await (await connection.execute(sql, params)).fetchall()

    async def value(self, sql: str, *params: Any) -> Any:
        """The only column of the only row."""
        ((found,),) = await self.rows(sql, *params)
        return found

    async def until(self, sql: str, *params: Any) -> None:
        """Returns once the query, a boolean one, is true."""
        for _ in range(POLLS):
            if await self.value(sql, *params):
                return
            await asyncio.sleep(POLL_SECONDS)
        raise AssertionError(f"never true: {sql} {params}\n{self.service.log_text()}")

    async def wait_for_log(self, words: str) -> None:
        """Returns once its log has these words."""
        for _ in range(POLLS):
            if words in self.service.log.read_text(errors="replace"):
                return
            await asyncio.sleep(POLL_SECONDS)
        raise AssertionError(f"the log never had {words!r}\n{self.service.log_text()}")

    async def close(self) -> None:
        """Ends process and channels."""
        for caller in self._callers.values():
            await caller.close()
        await asyncio.to_thread(self.service.stop)


@asynccontextmanager
async def crashing_taskdb(
    url: str, directory: Path, *flags: str, name: str = "taskdb"
) -> AsyncIterator[CrashingTaskDb]:
    """A taskdb that is not started yet; at the end of the block the database has to be in order."""
    service = taskdb_service(url, directory, *flags, name=name)
    made = {
        kind: await insert_key(url, kind) for kind in (api_keys.TENANT, api_keys.SCHEDULER, api_keys.RUNNER)
    }
    callers = {
        kind: Caller(service.address, made[kind].text) for kind in (api_keys.TENANT, api_keys.SCHEDULER)
    }
    taskdb = CrashingTaskDb(url, service, callers, made[api_keys.RUNNER].id)
    try:
        yield taskdb
        await asyncio.to_thread(assert_invariants, url)
    finally:
        await taskdb.close()
