"""Pushed updates survive kill -9 of the replica that accepted them, and are applied per task in order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest
from google.protobuf.struct_pb2 import Struct

from taskyard.compat.v1 import global_task_service_pb2 as pb
from taskyard.compat.v1.global_task_service_pb2_grpc import GlobalTaskServiceStub
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.keys import insert_key
from tests.harness.processes import Service
from tests.harness.taskdb_process import taskdb_service

TASKS = 100
PUSHES = int(os.environ.get("TASKYARD_GLOBAL_UPDATES", "10000")) // TASKS
OPTIONS = (("grpc.enable_retries", 0), ("grpc.max_reconnect_backoff_ms", 200))
# Notes every state of a task's details that a transaction has left behind.
TRIGGER = """
CREATE TABLE applied (place bigserial, task_id text, details bytea);
CREATE FUNCTION note_applied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO applied (task_id, details) VALUES (NEW.task_id, NEW.details); RETURN NEW; END $$;
CREATE TRIGGER note_applied AFTER UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION note_applied();
"""


class Pusher:
    """One caller that owns a task: it sends the next update once the one before is acknowledged."""

    def __init__(self, stubs: list[Any], metadata: Any) -> None:
        self._stubs = stubs
        self._metadata = metadata
        self.task_id = ""
        self.acknowledged = 0
        self.unknown = 0

    async def run(self) -> None:
        await self._insist("CreateGlobalTask", pb.CreateGlobalTaskRequest(task_type="vdag_creation"))
        for number in range(PUSHES - 1):
            await self.push(number, "in_progress")

    async def push(self, number: int, status: str) -> None:
        request = pb.PushGlobalTaskUpdateRequest(task_id=self.task_id, status=status)
        request.task_status_data["n"] = number
        await self._insist("PushGlobalTaskUpdate", request)
        self.acknowledged += 1

    async def _insist(self, method: str, request: Any) -> None:
        """Call one replica or the other until one acknowledges."""
        attempt = hash(self.task_id)
        while True:
            stub = self._stubs[attempt % len(self._stubs)]
            try:
                answer = await getattr(stub, method)(request, metadata=self._metadata, timeout=20)
            except grpc.aio.AioRpcError:
                # It may have been stored: the next attempt is then a repeat.
                self.unknown += 1
                attempt += 1
                await asyncio.sleep(0.05)
                continue
            self.task_id = self.task_id or answer.task_id
            return


async def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        return await (await connection.execute(sql.encode())).fetchall()


async def acknowledged(pushers: list[Pusher], share: float) -> None:
    """Returns once this share of all updates has been acknowledged."""
    while sum(p.acknowledged for p in pushers) < share * TASKS * PUSHES:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def kill_in_turn(services: list[Service], pushers: list[Pusher]) -> None:
    """Kill each replica while it accepts, and start it again."""
    for share, service in ((0.2, services[0]), (0.45, services[1]), (0.7, services[0])):
        await acknowledged(pushers, share)
        await asyncio.to_thread(service.kill)
        await asyncio.to_thread(service.start)


async def hold_back(url: str, pushers: list[Pusher], pushing: asyncio.Task[Any]) -> None:
    """Keep writers from the tasks while the last updates are accepted, so that many of each task wait."""
    await acknowledged(pushers, 0.8)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("SELECT 1 FROM tasks FOR UPDATE")
        await pushing
        waiting = await rows(url, "SELECT count(*), count(DISTINCT task_id) FROM inbox")
        assert waiting[0][0] > 2 * waiting[0][1] > 0


async def until_applied(url: str) -> None:
    async with asyncio.timeout(120):
        while (await rows(url, "SELECT count(*) FROM inbox"))[0][0]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@pytest.mark.timeout(400)
@pytest.mark.seed("S3.4", "S3.18")
async def test_no_update_is_lost_and_none_overtakes_another_when_writers_are_killed(
    database_url: str, tmp_path: Path
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(TRIGGER.encode())
    metadata = (("authorization", f"Bearer {(await insert_key(database_url, api_keys.TENANT)).text}"),)
    services = [taskdb_service(database_url, tmp_path, name=f"taskdb-{n}") for n in range(2)]
    channels = [grpc.aio.insecure_channel(service.address, options=OPTIONS) for service in services]
    try:
        for service in services:
            await asyncio.to_thread(service.start)
        pushers = [Pusher([GlobalTaskServiceStub(c) for c in channels], metadata) for _ in range(TASKS)]
        pushing = asyncio.create_task(_all(pusher.run() for pusher in pushers))
        await asyncio.gather(kill_in_turn(services, pushers), hold_back(database_url, pushers, pushing))
        await until_applied(database_url)
        await assert_newest(database_url, PUSHES - 2)
        await _all(pusher.push(PUSHES - 1, "completed") for pusher in pushers)
        await until_applied(database_url)
        await assert_newest(database_url, PUSHES - 1)
        await assert_complete(database_url, pushers)
        assert sum(pusher.unknown for pusher in pushers) > 0, "no call was cut off"
    finally:
        for channel in channels:
            await channel.close()
        for service in services:
            await asyncio.to_thread(service.stop)
            print(service.log_text())


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*work)


async def assert_newest(url: str, number: int) -> None:
    """Each task shows the update that was accepted last, not one that it has overtaken."""
    found = {Struct.FromString(row[0])["n"] for row in await rows(url, "SELECT details FROM tasks")}
    assert found == {number}


async def assert_complete(url: str, pushers: list[Pusher]) -> None:
    stored = {
        row[0]: row[1:] for row in await rows(url, "SELECT task_id, phase, version, details FROM tasks")
    }
    seen: dict[str, list[Any]] = {}
    for task_id, details in await rows(url, "SELECT task_id, details FROM applied ORDER BY place"):
        if details is not None:
            seen.setdefault(task_id, []).append(Struct.FromString(details)["n"])
    dropped = "SELECT resource_id, count(*) FROM changes WHERE details->>'reason' IS NOT NULL GROUP BY 1"
    rejected = dict(await rows(url, dropped))
    for pusher in pushers:
        phase, version, details = stored[pusher.task_id]
        assert (phase, Struct.FromString(details)["n"]) == (10, PUSHES - 1)
        assert seen[pusher.task_id] == sorted(seen[pusher.task_id])
        # A version for each update, one more for the start that each task has; a repeat may be dropped.
        applied = version - 1 + rejected.get(pusher.task_id, 0)
        assert pusher.acknowledged <= applied <= pusher.acknowledged + pusher.unknown + 1
