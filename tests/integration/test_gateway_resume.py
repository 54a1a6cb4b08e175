"""An event stream goes on exactly where it was: after kills of taskdb and of the gateway, and for curl."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.browser import PROGRAM, Browser, watching
from tests.harness.caller import Caller
from tests.harness.event_source import EventSource
from tests.harness.gateway import GatewayService, call, gateway_service
from tests.harness.keys import insert_key
from tests.harness.logged_changes import LOGGED
from tests.harness.processes import Service
from tests.harness.taskdb_process import taskdb_service
from tests.integration.test_watch_resume import Writer

# Of an EventSource: it comes back by itself.
CONNECTING = 0
WATCH = "/v1/tenants/default/tasks:watch?view=TASK_VIEW_NAME"


@contextlib.asynccontextmanager
async def served(url: str, folder: Path, *flags: str) -> AsyncIterator[tuple[Service, GatewayService, str]]:
    """A taskdb with a gateway in front of it, and a key."""
    key = (await insert_key(url, api_keys.TENANT)).text
    taskdb = taskdb_service(url, folder)
    gateway = gateway_service(taskdb.address, taskdb.address, folder, *flags)
    try:
        await asyncio.to_thread(taskdb.start)
        await asyncio.to_thread(gateway.start)
        yield taskdb, gateway, key
    finally:
        await asyncio.to_thread(gateway.stop)
        await asyncio.to_thread(taskdb.stop)
        print(gateway.log_text())


async def committed(url: str) -> Counter[tuple[str, int]]:
    """Every change of a task that there is."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        rows = await connection.execute(f"SELECT resource_id, version FROM {LOGGED} WHERE resource_kind = 1")
        return Counter(await rows.fetchall())


def seen(source: EventSource | Browser) -> Counter[tuple[str, int]]:
    """Every change that was received, as often as it was."""
    events = [event for message in source.received for event in message.get("events", ())]
    return Counter((event["task"]["metadata"]["id"], int(event["resourceVersion"])) for event in events)


async def test_an_event_source_loses_and_repeats_nothing_over_restarts(
    database_url: str, tmp_path: Path
) -> None:
    async with served(database_url, tmp_path) as (taskdb, gateway, key):
        caller = Caller(taskdb.address, key)
        writer = Writer(lambda: caller)
        source = EventSource(gateway.port, WATCH, key)
        try:
            assert await asyncio.to_thread(source.opened.wait, 30)
            writing = asyncio.create_task(writer.run())
            for count, victim in ((10, taskdb), (20, gateway), (30, taskdb), (40, gateway)):
                await writer.reach(count)
                await asyncio.to_thread(victim.kill)
                await asyncio.to_thread(victim.start)
            await writer.reach(50)
            await writer.stop()
            await writing
            wanted = await committed(database_url)
            async with asyncio.timeout(60):
                while seen(source).total() < wanted.total():  # noqa: ASYNC110  another thread reads
                    await asyncio.sleep(0.05)
            assert seen(source) == wanted
            assert source.ends >= 4 and not source.failed
        finally:
            source.close()
            await caller.close()


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
@pytest.mark.timeout(240)
async def test_a_browser_loses_and_repeats_nothing_over_restarts(database_url: str, tmp_path: Path) -> None:
    flags = ("--session-secret", "0123456789abcdef0123456789abcdef")
    async with served(database_url, tmp_path, *flags) as (taskdb, gateway, key):
        caller = Caller(taskdb.address, key)
        writer = Writer(lambda: caller)
        with watching(gateway.port, WATCH, key, tmp_path) as browser:
            try:
                assert await asyncio.to_thread(browser.opened.wait, 60), (
                    tmp_path / "browser.log"
                ).read_text()
                writing = asyncio.create_task(writer.run())
                for count, victim in ((10, taskdb), (20, gateway)):
                    await writer.reach(count)
                    await asyncio.to_thread(victim.kill)
                    await asyncio.to_thread(victim.start)
                await writer.reach(30)
                await writer.stop()
                await writing
                wanted = await committed(database_url)
                async with asyncio.timeout(60):
                    while seen(browser).total() < wanted.total():  # noqa: ASYNC110  another thread reads
                        await asyncio.sleep(0.05)
                assert seen(browser) == wanted
                # Each end was followed by a new attempt of the browser's own: its stream was never closed.
                assert not browser.failed and browser.errors and set(browser.errors) == {CONNECTING}
            finally:
                await caller.close()


async def test_a_drained_gateway_says_so_and_ends_its_streams(database_url: str, tmp_path: Path) -> None:
    async with served(database_url, tmp_path) as (_, gateway, key):
        source = EventSource(gateway.port, WATCH, key)
        try:
            assert await asyncio.to_thread(source.opened.wait, 30)
            assert await asyncio.to_thread(gateway.terminate) == 0
            assert await asyncio.to_thread(lambda: source._thread.is_alive() and not source.failed)
            await asyncio.to_thread(gateway.start)
            call(gateway, "POST", "/v1/tenants/default/tasks?task_id=after", COMMAND, key=key)
            async with asyncio.timeout(30):
                while not seen(source):  # noqa: ASYNC110  another thread reads
                    await asyncio.sleep(0.05)
            assert list(seen(source)) == [("after", 1)]
        finally:
            source.close()


COMMAND = {"spec": {"execution": {"command": {"program": "true"}}}}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_curl_goes_on_after_the_id_it_has_seen(database_url: str, tmp_path: Path) -> None:
    async with served(database_url, tmp_path) as (taskdb, gateway, key):
        address = f"http://{gateway.address}/v1/tenants/default/tasks:watch"

        def watch(query: str, *headers: str) -> list[dict[str, str]]:
            """The events that curl prints until the stream ends."""
            flags = [part for header in (f"Authorization: Bearer {key}", *headers) for part in ("-H", header)]
            command = ["curl", "-sSN", "-m", "60", *flags, f"{address}?{query}"]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            blocks = [
                block for block in printed.strip().split("\n\n") if not block.startswith((":", "retry"))
            ]
            return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]

        def create(task_id: str) -> None:
            path = f"/v1/tenants/default/tasks?task_id={task_id}"
            assert call(gateway, "POST", path, COMMAND, key=key).status == 200
            assert (
                call(gateway, "POST", f"/v1/tenants/default/tasks/{task_id}:cancel", {}, key=key).status
                == 200
            )

        create("first")
        query = "names=tenants/default/tasks/{}&untilTerminal=true&snapshot=true"
        snapshot = await asyncio.to_thread(watch, query.format("first"))
        assert snapshot[-1] == {"event": "end", "data": "{}"}
        token = [event["id"] for event in snapshot if "id" in event][-1]
        await asyncio.to_thread(taskdb.kill)
        await asyncio.to_thread(taskdb.start)
        after = await asyncio.to_thread(watch, query.format("first"), f"Last-Event-ID: {token}")
        assert not [e for event in after[:-1] for e in json.loads(event["data"]).get("events", ())]
