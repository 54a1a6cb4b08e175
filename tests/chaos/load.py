"""The users of a chaos run: they create, repeat, cancel, pause and wait, watch, and follow logs.

A call that fails is repeated until it is answered, as its contract allows; only answers are recorded.
"""

from __future__ import annotations

import asyncio
import http.client
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Literal, TypeVar

from taskyard import Client, Phase, command, errors
from tests.chaos.checker import SCHEDULE_SECONDS
from tests.chaos.history import History, now
from tests.chaos.topology import Topology
from tests.chaos.workloads import Plan, draw, scheduled_task
from tests.harness.gateway import call
from tests.harness.processes import Service

T = TypeVar("T")
Overlap = Literal["allow", "skip"]
RETRY_SECONDS = 0.2
CALL_SECONDS = 8.0
CANARY_SECONDS = 90.0
# How many of the creates are batches, and their size.
BATCH_SHARE = 0.06
BATCH_SIZE = 4
# How many are chains of as many tasks, each after the one before.
CHAIN_SHARE = 0.04
# The schedules that fire beside the users, by their overlap policy.
SCHEDULES: tuple[Overlap, ...] = ("allow", "skip")
TRANSIENT = (
    errors.Code.UNAVAILABLE,
    errors.Code.DEADLINE_EXCEEDED,
    errors.Code.RESOURCE_EXHAUSTED,
    errors.Code.ABORTED,
    errors.Code.UNKNOWN,
    errors.Code.CANCELLED,
)


class Load:
    """A number of users, each with one task at a time."""

    def __init__(self, topology: Topology, history: History, rng: random.Random, prefix: str = "t") -> None:
        self._topology = topology
        self._history = history
        self._rng = rng
        self._prefix = prefix
        self._number = 0
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._followers: list[asyncio.Task[None]] = []
        # Each user prefers another replica.
        self._clients = [topology.client(), topology.client(reverse=True)]
        self._client = self._clients[0]
        self.plans: dict[str, Plan] = {}
        self.versions: dict[str, int] = {}
        self.failures: list[str] = []

    async def start(self, users: int) -> None:
        watching = asyncio.Event()
        self._watcher = asyncio.create_task(self._watch(watching))
        await asyncio.wait_for(watching.wait(), 60)
        self._tasks = [asyncio.create_task(self._user()) for _ in range(users)]
        self._schedules = [f"{self._prefix}-{policy}" for policy in SCHEDULES]
        for name, policy in zip(self._schedules, SCHEDULES, strict=True):
            await self._client.schedules.create(
                name, scheduled_task(), every=SCHEDULE_SECONDS, overlap=policy, catch_up_window=3600
            )
        if self._topology.gateway is not None:
            self._tasks.append(asyncio.create_task(self._browse(self._topology.gateway)))

    def burst(self, count: int) -> None:
        """So many short tasks at once, besides those of the users."""
        for _ in range(count):
            self._number += 1
            plan = Plan(f"{self._prefix}-{self._number:04}-burst", "plain", steps=8, pace=0.25)
            self._tasks.append(asyncio.create_task(self._live(plan)))

    async def stop(self, seconds: float) -> list[str]:
        """Lets every user finish its task; the names of tasks that did not end in time."""
        self._stopping.set()
        self._tasks += [asyncio.create_task(self._end_schedule(name)) for name in self._schedules]
        _, pending = await asyncio.wait(self._tasks, timeout=seconds)
        for task in pending:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._followers:
            await asyncio.wait(self._followers, timeout=20)
        ended = {entry.task for entry in self._history.of("ended")}
        return sorted(self.plans.keys() - ended)

    async def close(self) -> None:
        for task in (self._watcher, *self._followers):
            task.cancel()
        await asyncio.gather(self._watcher, *self._followers, return_exceptions=True)
        for client in self._clients:
            await client.close()

    async def watched(self, versions: dict[str, int], seconds: float) -> None:
        """Returns once the watch has reached these versions, or the time is over."""
        deadline = now() + seconds
        while now() < deadline:
            if all(self.versions.get(task, 0) >= version for task, version in versions.items()):
                return
            await asyncio.sleep(0.1)

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer, however long that takes; errors that are no outage are raised."""
        while True:
            try:
                return await asyncio.wait_for(call(), CALL_SECONDS)
            except (TimeoutError, errors.TaskyardError) as error:
                if isinstance(error, errors.TaskyardError) and error.code not in TRANSIENT:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    async def _watch(self, ready: asyncio.Event) -> None:
        """Every change of the tenant, as the client delivers it."""
        async for event in self._client.watch(snapshot=True, bookmarks=True):
            ready.set()
            name = event.task.id
            if name.startswith(self._prefix) or event.task.labels.get("chaos") == "child":
                self._history.add("watch", task=name, version=event.version, phase=int(event.phase))
                self.versions[name] = event.version

    async def _user(self) -> None:
        while not self._stopping.is_set():
            self._number += 1
            plan = draw(self._rng, self._number, self._prefix, functions=self._topology.functions)
            try:
                drawn = self._rng.random()
                if drawn < BATCH_SHARE:
                    await self._live_batch()
                elif drawn < BATCH_SHARE + CHAIN_SHARE:
                    await self._live_chain()
                else:
                    await self._live(plan)
            except errors.TaskyardError as error:
                self.failures.append(f"{plan.id}: {error!r}")

    async def _end_schedule(self, name: str) -> None:
        """Pauses it and waits for its tasks."""
        await self._insist(lambda: self._client.schedules.pause(name))
        for task in await self._insist(lambda: self._fired(name)):
            await self._insist(lambda task=task: self._client.wait(task, timeout=CALL_SECONDS - 1))  # type: ignore[misc]

    async def _fired(self, name: str) -> list[str]:
        found = self._client.list('labels.chaos = "scheduled"')
        return [task.id async for task in found if task.id.startswith(f"{name}.") and not task.phase.terminal]

    async def _browse(self, gateway: Service) -> None:
        """A user of HTTP, who is answered or gets an error within the time of a call."""
        key = self._topology.keys["tenant"]
        path = "/v1/tenants/default/tasks?pageSize=1"
        while not self._stopping.is_set():
            with suppress(OSError, http.client.HTTPException):
                await asyncio.to_thread(call, gateway, "GET", path, key=key, timeout=CALL_SECONDS)
            await asyncio.sleep(0.5)

    async def _live(self, plan: Plan) -> None:
        """One task from its creation to its end."""
        self._note_plan(plan)
        effects = self._history.effects_path
        for _ in range(self._rng.choice([1, 1, 1, 2])):
            client = self._rng.choice(self._clients)
            made = await self._insist(lambda client=client: client.create(plan.task(effects)))  # type: ignore[misc]
            self._history.add("created", task=plan.id, answer=made.id)
        await self._see_through(plan)

    def _note_plan(self, plan: Plan) -> None:
        self.plans[plan.id] = plan
        self._history.add("plan", **plan.fields())

    def _draw_plans(self) -> list[Plan]:
        plans = []
        for _ in range(BATCH_SIZE):
            self._number += 1
            plans.append(draw(self._rng, self._number, self._prefix, functions=self._topology.functions))
        return plans

    async def _live_chain(self) -> None:
        """Tasks that run one after the other, created all or none, by a call that is sent twice at times."""
        plans = self._draw_plans()
        plans = [plans[0], *(replace(later, after=earlier.id) for earlier, later in pairwise(plans))]
        for plan in plans:
            self._note_plan(plan)
        for _ in range(self._rng.choice([1, 2])):
            tasks = [plan.task(self._history.effects_path) for plan in plans]
            made = await self._insist(lambda: self._client.create_all(tasks))  # noqa: B023
            for plan, one in zip(plans, made, strict=True):
                self._history.add("created", task=plan.id, answer=one.id)
        await asyncio.gather(*(self._see_through(plan) for plan in plans))

    async def _live_batch(self) -> None:
        """Some tasks created by one call, which is sent twice at times."""
        plans = self._draw_plans()
        for plan in plans:
            self._note_plan(plan)
        for _ in range(self._rng.choice([1, 2])):
            client = self._rng.choice(self._clients)
            for plan, made in zip(plans, await self._create_all(client, plans), strict=True):
                self._history.add("created", task=plan.id, answer=made)
        await asyncio.gather(*(self._see_through(plan) for plan in plans))

    async def _create_all(self, client: Client, plans: Sequence[Plan]) -> list[str]:
        """The ids of the created tasks; the batch is sent until every item has its answer."""

        async def create() -> list[str]:
            made = []
            async for result in client.create_many(plan.task(self._history.effects_path) for plan in plans):
                if isinstance(result, errors.TaskyardError):
                    raise result
                made.append(result.id)
            return made

        return await self._insist(create)

    async def _see_through(self, plan: Plan) -> None:
        """What its user does with a task that exists, to its end."""
        if self._rng.random() < 0.25:
            self._followers.append(asyncio.create_task(self._follow(plan)))
        if plan.action:
            await self._act(plan)
        done = await self._insist(lambda: self._client.wait(plan.id, timeout=CALL_SECONDS - 1))
        self._history.add("ended", task=plan.id, phase=int(done.phase))

    async def _act(self, plan: Plan) -> None:
        """Cancel it, or pause and resume it, once it runs."""
        if not await self._running(plan):
            return
        await asyncio.sleep(self._rng.uniform(0, 0.5))
        try:
            if plan.action == "cancel":
                await self._insist(lambda: self._client.cancel(plan.id))
                self._history.add("cancelled", task=plan.id)
                return
            await self._insist(lambda: self._client.pause(plan.id))
            self._history.add("paused", task=plan.id)
            await asyncio.sleep(self._rng.uniform(0, 2))
            await self._insist(lambda: self._client.resume(plan.id))
            self._history.add("resumed", task=plan.id)
        except (errors.TaskTerminal, errors.PhaseConflict):
            return

    async def _running(self, plan: Plan) -> bool:
        """Whether it runs; false if it has ended."""
        while True:
            phase = (await self._insist(lambda: self._client.get(plan.id))).phase
            if phase is Phase.RUNNING:
                return True
            if phase.terminal:
                return False
            await asyncio.sleep(0.1)

    async def _follow(self, plan: Plan) -> None:
        """Follow its log to the end; only a first connection that fails is the caller's to repeat."""
        while True:
            lines: list[list[int]] = []
            try:
                async for entry in self._client.logs(plan.id, follow=True):
                    lines.append([entry.generation, entry.sequence])
                break
            except errors.TaskyardError as error:
                if lines or error.code not in TRANSIENT:
                    self.failures.append(f"log of {plan.id}: {error!r}")
                    return
                await asyncio.sleep(RETRY_SECONDS)
        self._history.add("followed", task=plan.id, lines=lines)


class Canary:
    """Measures recovery: how long until a create is answered and its task has ended."""

    def __init__(self, topology: Topology) -> None:
        self._client: Client = topology.client()
        self._number = 0

    async def measure(self, begin: float) -> tuple[float, float]:
        """Seconds from `begin` to the answer of a create made now, and to the end of its task.

        Infinite if that takes longer than CANARY_SECONDS.
        """
        try:
            async with asyncio.timeout(CANARY_SECONDS):
                return await self._measure(begin)
        except TimeoutError:
            return math.inf, math.inf

    async def _measure(self, begin: float) -> tuple[float, float]:
        self._number += 1
        name = f"canary-{self._number:04}"
        new = command("true", id=name, request_id=name, priority=100, retry=20)
        created = 0.0
        while not created:
            with suppress(errors.TaskyardError, TimeoutError):
                await asyncio.wait_for(self._client.create(new), CALL_SECONDS)
                created = now() - begin
            if not created:
                await asyncio.sleep(0.1)
        while True:
            with suppress(errors.TaskyardError, TimeoutError):
                await asyncio.wait_for(self._client.wait(name), CALL_SECONDS)
                return created, now() - begin
            await asyncio.sleep(0.1)

    async def close(self) -> None:
        await self._client.close()
