"""Fixtures: a scheduler peer in this process and real runner processes that speak with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from services.runner.tests.runner_process import RunnerProcess
from services.runner.tests.scheduler_peer import SchedulerPeer

StartRunner = Callable[..., Awaitable[RunnerProcess]]


@pytest.fixture
async def peer() -> AsyncIterator[SchedulerPeer]:
    async with SchedulerPeer() as running:
        yield running


@pytest.fixture
async def start_runner(peer: SchedulerPeer, tmp_path: Path) -> AsyncIterator[StartRunner]:
    """Starts runners; the first session is welcomed when it returns."""
    runners: list[RunnerProcess] = []

    async def start(
        *arguments: str, welcomed: bool = True, program: tuple[str, ...] = (), **environment: str
    ) -> RunnerProcess:
        runner = RunnerProcess(tmp_path / "data", peer.address, **environment)
        runner.program = program or runner.program
        runners.append(runner)
        before = len(peer.sessions)
        await runner.start("--capacity", "10", *arguments)
        if welcomed:
            await peer.next_session(before + 1)
        return runner

    yield start
    for runner in runners:
        await runner.kill()
        runner.clean()
        print(runner.output())


@pytest.fixture
async def runner(start_runner: StartRunner) -> RunnerProcess:
    """A connected runner with room for ten tasks."""
    return await start_runner()
