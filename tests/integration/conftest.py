"""A taskdb to be killed, and real runners under the control plane of a module, its fixture `plane`."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from services.runner.tests.runner_process import RunnerProcess
from taskyard import Client
from taskyard_runner.warden.cgroup import find_hierarchy
from tests.harness.control_plane import ControlPlane
from tests.harness.taskdb_process import CrashingTaskDb, crashing_taskdb

StartRunner = Callable[..., Awaitable[RunnerProcess]]

_hierarchy, _why = find_hierarchy(f"integration-{os.getpid()}")
if _hierarchy is not None:
    _hierarchy.close()
needs_cgroups = pytest.mark.skipif(_hierarchy is None, reason=f"no control groups: {_why}")


@pytest.fixture
def taskdb_flags() -> tuple[str, ...]:
    """Flags of the taskdb of a module."""
    return ()


@pytest.fixture
async def taskdb(
    database_url: str, tmp_path: Path, taskdb_flags: tuple[str, ...]
) -> AsyncIterator[CrashingTaskDb]:
    """A taskdb process that failpoints may kill."""
    async with crashing_taskdb(database_url, tmp_path, *taskdb_flags) as made:
        yield made


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with plane.client() as opened:
        yield opened


@pytest.fixture
def own() -> dict[str, str]:
    """A label that keeps the tasks and runners of one test among themselves."""
    return {"test": uuid.uuid4().hex[:8]}


@pytest.fixture
def runner_flags() -> tuple[str, ...]:
    """What every runner of a module has; flags of a single one come after them and win."""
    return ()


@pytest.fixture
async def start_runner(
    plane: ControlPlane, tmp_path: Path, own: dict[str, str], runner_flags: tuple[str, ...]
) -> AsyncIterator[StartRunner]:
    started: list[RunnerProcess] = []

    async def start(*flags: str, id: str = "", **environment: str) -> RunnerProcess:
        id = id or f"runner-{uuid.uuid4().hex[:8]}"
        address, key = plane.schedulers[0].address, plane.keys["runner"]
        runner = RunnerProcess(tmp_path / id, address, id=id, key=key, **environment)
        started.append(runner)
        await runner.start("--label", f"test={own['test']}", *runner_flags, *flags)
        return await runner.connected(runner.sessions() + 1)

    yield start
    for runner in started:
        await runner.kill()
        runner.clean()
        print(runner.output())
    print(plane.logs())
