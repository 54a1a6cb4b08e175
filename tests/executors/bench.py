"""What the cases act on: a client, a runner of the kind, and ways to wait for what a user sees."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from services.runner.tests.runner_process import RunnerProcess
from taskyard import Client, Created, NewTask, Phase, Task
from taskyard_runner.warden.cgroup import find_hierarchy
from tests.harness.control_plane import ControlPlane

PATIENCE = 60


@cache
def limits_problem() -> str:
    """Why this host limits no task; empty if it does."""
    hierarchy, why = find_hierarchy(f"executors-{os.getpid()}")
    if hierarchy is not None:
        hierarchy.close()
    return why


@dataclass
class Bench:
    """The tasks and runners of one label, which keeps them among themselves."""

    plane: ControlPlane
    client: Client
    folder: Path
    flags: tuple[str, ...]
    started: list[RunnerProcess]
    label: str

    def elsewhere(self) -> Bench:
        """The same with no runner yet."""
        return replace(self, label=uuid.uuid4().hex[:8])

    @property
    def runner(self) -> RunnerProcess:
        """The one that every case shares."""
        return self.started[0]

    async def start_runner(self, *flags: str) -> RunnerProcess:
        """A runner with the label; connected when it returns."""
        id = f"runner-{uuid.uuid4().hex[:8]}"
        address, key = self.plane.schedulers[0].address, self.plane.keys["runner"]
        sandbox = {"TASKYARD_RUNNER_SANDBOX": "auto"}
        runner = RunnerProcess(self.folder / id, address, id=id, key=key, **sandbox)
        self.started.append(runner)
        await runner.start("--capacity", "4", "--label", f"test={self.label}", *self.flags, *flags)
        return await runner.connected()

    async def create(self, new: NewTask) -> Created:
        """Create it for the runners of the label."""
        new.request.task.spec.placement.required.selector.match_labels["test"] = self.label
        return await self.client.create(new)

    async def run(self, new: NewTask) -> Task:
        """Create it and wait for its end."""
        return await self.client.wait(await self.create(new), timeout=PATIENCE)

    async def lines(self, task: Created | Task) -> list[str]:
        """All that it logged."""
        return [entry.message async for entry in self.client.logs(task, follow=True)]

    async def written(self, task: Created, text: str) -> None:
        """Returns once the task has logged this line."""
        async for entry in self.client.logs(task, follow=True):
            if entry.message == text:
                return
        raise AssertionError(f"{text!r} was not logged: {(await self.client.get(task)).proto}")

    async def reached(self, task: Created, phase: Phase) -> None:
        """Returns once the task is in this phase."""
        async for event in self.client.watch(task, snapshot=True):
            if event.phase is phase:
                return

    def needs_limits(self) -> None:
        """Skips the case where the host has no control groups for the runner."""
        if problem := limits_problem():
            pytest.skip(f"no control groups: {problem}")
