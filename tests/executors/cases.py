"""The table that every kind of execution passes, case by case, under real taskdb, scheduler and runners."""

from __future__ import annotations

import os
import signal
from typing import ClassVar

import pytest

from taskyard import Phase, RunState
from tests.executors.bench import PATIENCE, Bench
from tests.executors.kinds import Kind


@pytest.mark.asyncio(loop_scope="module")
class ExecutorCases:
    """Subclassed once per kind, which provides the tasks; the table has a column per case."""

    kind: ClassVar[Kind]

    async def test_success(self, bench: Bench) -> None:
        task = await bench.run(self.kind.prints("hello"))
        assert task.phase is Phase.SUCCEEDED, task.proto
        (only,) = [found async for found in bench.client.runs(task)]
        assert (only.runner, only.attempt) == (bench.runner.id, 1)

    async def test_failure(self, bench: Bench) -> None:
        task = await bench.run(self.kind.fails(retry=0))
        assert task.phase in (Phase.FAILED, Phase.EXHAUSTED)
        assert task.error is not None and task.error.code and task.error.message

    async def test_transient_error(self, bench: Bench) -> None:
        task = await bench.run(self.kind.fails(retry={"max_retries": 1, "initial": 0.05}))
        assert (task.phase, task.attempt) == (Phase.EXHAUSTED, 2)

    async def test_permanent_error(self, bench: Bench) -> None:
        task = await bench.run(self.kind.fails_for_good(retry={"max_retries": 3, "initial": 0.05}))
        assert (task.phase, task.attempt) == (Phase.FAILED, 1)

    async def test_timeout(self, bench: Bench) -> None:
        task = await bench.run(self.kind.hangs(timeout=1, stop_grace_period=1, retry=0))
        assert task.phase is Phase.TIMED_OUT
        assert task.error is not None and task.error.code == "ATTEMPT_TIMEOUT"

    async def test_cancel(self, bench: Bench) -> None:
        task = await bench.create(self.kind.hangs(stop_grace_period=1))
        await bench.written(task, "ready")
        await bench.client.cancel(task)
        assert (await bench.client.wait(task, timeout=PATIENCE)).phase is Phase.CANCELLED

    async def test_pause_and_resume_elsewhere(self, bench: Bench) -> None:
        own = bench.elsewhere()
        first = await own.start_runner()
        task = await own.create(self.kind.counts(stop_grace_period=5))
        await own.written(task, "ready")
        await own.client.pause(task)
        await own.reached(task, Phase.PAUSED)
        await first.kill()
        second = await own.start_runner()
        await own.client.resume(task)
        done = await own.client.wait(task, timeout=PATIENCE)
        assert done.phase is Phase.SUCCEEDED, done.proto
        assert [line for line in await own.lines(done) if line.startswith("from")] == ["from 0", "from 1"]
        assert second.id in [found.runner async for found in own.client.runs(done)]

    async def test_progress(self, bench: Bench) -> None:
        task = await bench.run(self.kind.reports_progress())
        assert task.phase is Phase.SUCCEEDED, task.proto
        progress = task.proto.status.progress
        assert (progress.percent, progress.message) == (60, "half")

    async def test_logs(self, bench: Bench) -> None:
        wanted = [f"line {number}" for number in range(20)]
        task = await bench.run(self.kind.prints(*wanted))
        assert await bench.lines(task) == wanted

    async def test_result(self, bench: Bench) -> None:
        task = await bench.run(self.kind.returns())
        assert (task.phase, task.output) == (Phase.SUCCEEDED, {"sum": 42}), task.proto

    async def test_limits(self, bench: Bench) -> None:
        bench.needs_limits()
        hog = await bench.create(self.kind.takes_memory(memory_mb=64, retry=0))
        neighbour = await bench.run(self.kind.prints("fine"))
        ended = await bench.client.wait(hog, timeout=PATIENCE)
        assert neighbour.phase is Phase.SUCCEEDED, neighbour.proto
        assert ended.error is not None and ended.error.code == self.kind.memory_code, ended.proto

    async def test_agent_killed_and_adopted(self, bench: Bench) -> None:
        task = await bench.create(self.kind.lingers())
        await bench.written(task, "before")
        sessions = bench.runner.sessions()
        os.kill(bench.runner.agent_pid, signal.SIGKILL)
        await bench.runner.connected(sessions + 1)
        done = await bench.client.wait(task, timeout=PATIENCE)
        assert done.phase is Phase.SUCCEEDED, done.proto
        assert await bench.lines(done) == ["before", "after"]
        assert [found.state async for found in bench.client.runs(done)] == [RunState.SUCCEEDED]
