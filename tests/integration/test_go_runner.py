"""The runner in Go in the real suite: it survives kill -9 of the scheduler and of taskdb in mid-task."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from taskyard import Client, Phase, command
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.leash import tied
from tests.harness.postgres import PostgresServer
from tests.runner_kit.subject import GO, build_go_runner

pytestmark = [
    pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed"),
    pytest.mark.timeout(600),
]


def start_runner(plane: ControlPlane, folder: Path) -> subprocess.Popen[bytes]:
    values = {"{scheduler}": plane.schedulers[0].address, "{id}": "go-1", "{data}": str(folder)}
    with (folder / "runner.log").open("wb") as log:
        return subprocess.Popen(
            tied(*(values.get(part, part) for part in GO)),
            env={**os.environ, "TASKYARD_KEY": plane.keys["runner"]},
            stdout=log,
            stderr=log,
        )


async def until_running(client: Client, task: str) -> None:
    async with asyncio.timeout(60):
        async for event in client.watch(task, snapshot=True):
            if event.phase is Phase.RUNNING:
                return


async def test_a_task_survives_kills_of_scheduler_and_taskdb(
    postgres_server: PostgresServer, migrated_template: str, tmp_path: Path
) -> None:
    build_go_runner()
    with control_plane(postgres_server, migrated_template) as plane:
        runner = start_runner(plane, tmp_path)
        try:
            async with plane.client() as client:
                gate = tmp_path / "gate"
                text = f"echo before; while [ ! -e {gate} ]; do sleep 0.05; done; echo after; exit 3"
                task = await client.create(command("sh", "-c", text, retry=0))
                await until_running(client, task.name)
                plane.schedulers[0].kill()
                await asyncio.to_thread(plane.schedulers[0].start)
                plane.taskdbs[0].kill()
                await asyncio.to_thread(plane.taskdbs[0].start)
                gate.touch()
                ended = await client.wait(task, timeout=180)
                log = (tmp_path / "runner.log").read_text() + plane.logs()
                assert (ended.phase, ended.exit_code, ended.attempt) == (Phase.FAILED, 3, 1), log
                lines = [line.message async for line in client.logs(task, follow=True)]
                assert lines == ["before", "after"], log
                later = await client.create(command("echo", "hello"))
                assert (await client.wait(later, timeout=60)).phase is Phase.SUCCEEDED, log
                assert [line.message async for line in client.logs(later, follow=True)] == ["hello"]
            runner.terminate()
            assert await asyncio.to_thread(runner.wait, 60) == 0
        finally:
            runner.kill()
            runner.wait()
