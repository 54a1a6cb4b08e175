"""A scheduler's KeepCredit stream, as tests use it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Runner, Yard, duration, started, succeeded
from taskyard.v1 import lease_pb2, lease_service_pb2


class CreditStream:
    """Credit of one scheduler; `assignments` are the tasks that were leased on it, in order."""

    def __init__(self, taskdb: RunningTaskDb, yard: Yard, class_id: int) -> None:
        self.class_id = class_id
        self.assignments: list[lease_pb2.Assignment] = []
        self.settled: list[str] = []
        self._book = taskdb.taskdb.credit
        self._scheduler_id = yard.scheduler_id
        self._call = yard.scheduler.leases.KeepCredit(None)
        self._marks = 0

    async def give(
        self,
        runner: Runner,
        places: int = 1,
        *,
        position: int | None = None,
        valid_for: float = 30,
        runner_valid_for: float = 30,
        **fields: Any,
    ) -> None:
        """Give credit for the class, considering all work that is known to wait."""
        credit = lease_service_pb2.RunnerCredit(
            runner_id=runner.id,
            session_epoch=fields.pop("session_epoch", runner.epoch),
            places=places,
            heartbeat_id=7,
            valid_for=duration(runner_valid_for),
            lease_duration=duration(15),
            class_ids=[self.class_id],
            **fields,
        )
        await self.send(credit, position=position, valid_for=valid_for)

    async def withdraw(self, runner: Runner) -> None:
        """Withdraw the credit of a runner and wait until it is settled."""
        await self.send(
            lease_service_pb2.RunnerCredit(runner_id=runner.id, session_epoch=runner.epoch, withdrawn=True)
        )

    async def send(
        self,
        *credits: lease_service_pb2.RunnerCredit,
        position: int | None = None,
        valid_for: float = 30,
        replica_id: str = "",
    ) -> None:
        """Send a message, and wait until taskdb has applied it."""
        request = lease_service_pb2.KeepCreditRequest(
            scheduler_id=self._scheduler_id, valid_for=duration(valid_for), runners=credits
        )
        request.position.replica_id = replica_id or self._book.replica_id
        request.position.number = self._book.position if position is None else position
        # Messages are applied in order: the withdrawal of no credit is settled after the message before it.
        self._marks += 1
        mark = f"mark-{self._marks}"
        request.runners.add(runner_id=mark, session_epoch=1, withdrawn=True)
        await self._call.write(request)
        await self.receive(lambda: mark in self.settled)

    async def receive(self, until: Any) -> None:
        """Read responses until a condition is fulfilled."""
        async with asyncio.timeout(15):
            while not until():
                response = await self._call.read()
                self.settled += response.settled
                for granted in response.granted:
                    assert granted.heartbeat_id == 7
                    self.assignments += granted.assignments

    async def lease(self, count: int = 1) -> list[lease_pb2.Assignment]:
        """The next leased tasks."""
        await self.receive(lambda: len(self.assignments) >= count)
        taken, self.assignments = self.assignments[:count], self.assignments[count:]
        return taken

    async def end(self) -> None:
        """End the stream, and wait until taskdb knows."""
        ended = asyncio.Event()
        (line,) = self._book._lines
        close = line.close

        def close_and_signal() -> None:
            close()
            ended.set()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(line, "close", close_and_signal)
            self._call.cancel()
            async with asyncio.timeout(15):
                await ended.wait()


async def open_credit(taskdb: RunningTaskDb, yard: Yard, runner: Runner) -> CreditStream:
    """A stream for the class of commands, which has had work."""
    await yard.create()
    ((class_id,),) = await taskdb.rows("SELECT DISTINCT class_id FROM tasks")
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), succeeded(assignment))
    return CreditStream(taskdb, yard, class_id)
