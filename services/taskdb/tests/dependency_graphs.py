"""Random graphs of dependencies: drawn, run to their end by a played runner, and judged by the change log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from services.taskdb.tests.yard import Runner, Yard, failed, started, succeeded
from taskyard import errors
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.dependency import Condition, is_met
from taskyard_taskdb.domain.words import Phase

BATCH = 1000
Rows = Callable[..., Awaitable[list[tuple[Any, ...]]]]


@dataclass(frozen=True)
class Graph:
    """Tasks by id, in an order in which each comes after those that it names; and what becomes of them."""

    after: dict[str, list[tuple[str, Condition]]]
    fails: frozenset[str] = frozenset()
    cancelled: frozenset[str] = frozenset()
    # The groups of tasks; a prerequisite "groups/{group}" comes after all of them.
    groups: Mapping[str, str] = field(default_factory=dict)

    def members(self, prerequisite: str) -> list[str]:
        """The tasks that a prerequisite consists of: itself, or those of a group."""
        if not prerequisite.startswith("groups/"):
            return [prerequisite]
        return [task_id for task_id, group in self.groups.items() if f"groups/{group}" == prerequisite]


def draw(rng: Random, size: int, prefix: str, most: int = 4) -> Graph:
    """A random graph: chains, fans, groups and independent tasks; some tasks fail, some are cancelled."""
    ids = [f"{prefix}-{n:04}" for n in range(size)]
    after: dict[str, list[tuple[str, Condition]]] = {}
    groups = _draw_groups(rng, ids, prefix)
    # A group is named by tasks behind its last one only: to wait for it closes it.
    last = {group: task_id for task_id, group in groups.items()}
    complete: list[str] = []
    for place, task_id in enumerate(ids):
        near = ids[max(0, place - rng.choice((1, 3, 50))) : place]
        named = rng.sample(near, min(len(near), rng.choice((0, 1, 1, 2, most))))
        conditions = (Condition.SUCCEEDED, Condition.SUCCEEDED, Condition.SUCCEEDED, *Condition)
        if complete and rng.random() < 0.2:
            named.append(f"groups/{rng.choice(complete[-3:])}")
        after[task_id] = [(one, rng.choice(conditions)) for one in named]
        group = groups.get(task_id)
        if group is not None and last[group] == task_id:
            complete.append(group)
    share = rng.choice((0.0, 0.02, 0.2))
    fails = frozenset(one for one in ids if rng.random() < share)
    return Graph(after, fails, frozenset(one for one in ids if rng.random() < share / 2), groups)


def _draw_groups(rng: Random, ids: list[str], prefix: str) -> dict[str, str]:
    """Some neighbours form groups, with tasks of none between them."""
    groups: dict[str, str] = {}
    place = 0
    while place < len(ids):
        size = rng.choice((0, 1, 2, 5, 30))
        for task_id in ids[place : place + size]:
            if rng.random() < 0.8:
                groups[task_id] = f"{prefix}-group-{place}"
        place += size + rng.randrange(1, 10)
    return groups


def requests(graph: Graph) -> list[task_service_pb2.CreateTaskRequest]:
    """The creates, in the order of the graph."""
    made = []
    for task_id, named in graph.after.items():
        spec = task_pb2.TaskSpec(
            execution=task_pb2.Execution(command=task_pb2.CommandExecution(program="true")),
            after=[_dependency(one, when) for one, when in named],
        )
        task = task_pb2.Task(spec=spec)
        task.metadata.group = graph.groups.get(task_id, "")
        made.append(task_service_pb2.CreateTaskRequest(task=task, task_id=task_id))
    return made


def _dependency(prerequisite: str, when: Condition) -> task_pb2.Dependency:
    condition = task_pb2.DependencyCondition.ValueType(when)
    if prerequisite.startswith("groups/"):
        return task_pb2.Dependency(group=prerequisite[7:], when=condition)
    return task_pb2.Dependency(task=prerequisite, when=condition)


@dataclass
class Play:
    """Creates the tasks of a graph and runs what can be claimed until every task has ended."""

    yard: Yard
    graph: Graph
    rng: Random
    rows: Rows
    # What a leader would do; nothing where one does.
    sweep: Callable[[], Awaitable[Any]]
    patience: float = 300.0
    runner: Runner | None = None
    reported: int = 0
    errors: list[str] = field(default_factory=list)

    async def run(self) -> None:
        """Run the graph to its end. Fails if nothing happens for longer than the patience."""
        await self._create()
        await asyncio.gather(self._cancel(), self._work())

    async def _create(self) -> None:
        made = requests(self.graph)
        for start in range(0, len(made), BATCH):
            items = made[start : start + BATCH]
            # A batch may name its own items in any order.
            self.rng.shuffle(items)
            batch = task_service_pb2.BatchCreateTasksRequest(
                parent="tenants/default",
                requests=items,
                mode=common_pb2.BATCH_MODE_ATOMIC,
                request_id=f"graph-{start}-{items[0].task_id}",
            )
            await self._call(partial(self.yard.tenant.tasks.BatchCreateTasks, batch))

    async def _cancel(self) -> None:
        for task_id in sorted(self.graph.cancelled):
            await asyncio.sleep(0)
            request = task_service_pb2.CancelTaskRequest(name=f"tenants/default/tasks/{task_id}")
            with contextlib.suppress(errors.TaskTerminal):
                await self._call(partial(self.yard.tenant.tasks.CancelTask, request))

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self.patience
        left = len(self.graph.after)
        while left:
            if await self._claim_and_report():
                until = loop.time() + self.patience
                continue
            await self.sweep()
            now_left = await self._left()
            if now_left < left:
                until = loop.time() + self.patience
            left = now_left
            assert loop.time() < until, f"{left} tasks never ended: {await self._stuck()}"
            await asyncio.sleep(0.02)

    async def _claim_and_report(self) -> int:
        try:
            if self.runner is None:
                name = f"graph-{self.rng.getrandbits(32):x}"
                self.runner, _ = await self.yard.hello(name, lease_seconds=300)
            claimed = await self.yard.claim(self.runner, self.rng.choice((1, 7, 100)), lease_seconds=2)
            if claimed.error.code:
                self.runner = None
                return 0
            found = claimed.assignments
            reports = []
            for assignment in found:
                reports.append(started(assignment))
                fails = assignment.lease.task.rpartition("/")[2] in self.graph.fails
                reports.append(failed(assignment, permanent=True) if fails else succeeded(assignment))
            if reports:
                await self._call(lambda: self.yard.report(self.runner or "", *reports))
            self.reported += len(found)
            return len(found)
        except errors.TaskyardError as error:
            # The server was killed meanwhile, or the session is over: another one begins.
            self.errors.append(error.reason)
            self.runner = None
            await asyncio.sleep(0.1)
            return 0

    async def _call(self, call: Callable[[], Awaitable[Any]]) -> Any:
        for _ in range(600):
            try:
                return await call()
            except (errors.Unavailable, errors.DeadlineExceeded, errors.ResourceExhausted) as error:
                self.errors.append(error.reason)
                await asyncio.sleep(0.1)
        raise AssertionError("taskdb never came back")

    async def _left(self) -> int:
        ids = list(self.graph.after)
        sql = "SELECT count(*) FROM tasks WHERE task_id = ANY (%s) AND end_time IS NULL"
        return int((await self.rows(sql, ids))[0][0])

    async def _stuck(self) -> list[tuple[Any, ...]]:
        columns = "SELECT task_id, phase, pending_reason FROM tasks"
        sql = f"{columns} WHERE task_id = ANY (%s) AND end_time IS NULL LIMIT 5"
        return await self.rows(sql, list(self.graph.after))


async def judge(graph: Graph, rows: Rows) -> dict[str, int]:
    """Check every task against its prerequisites by the change log; returns how many ended how."""
    ids = list(graph.after)
    found = await rows("SELECT task_id, phase, attempt, error_code FROM tasks WHERE task_id = ANY (%s)", ids)
    state = {row[0]: (Phase(row[1]), row[2], row[3]) for row in found}
    changes = await rows(
        "SELECT resource_id, min(id) FILTER (WHERE event = %s), max(id) FILTER (WHERE phase >= 10) "
        "FROM changes WHERE resource_id = ANY (%s) AND resource_kind = 1 GROUP BY 1",
        int(ChangeEvent.TASK_SCHEDULED),
        ids,
    )
    first_claim = {row[0]: row[1] for row in changes}
    end = {row[0]: row[2] for row in changes}
    counts: dict[str, int] = {}
    for prerequisite in {one for named in graph.after.values() for one, _ in named if "/" in one}:
        members = graph.members(prerequisite)
        failed = any(state[one][0] is not Phase.SUCCEEDED for one in members)
        state[prerequisite] = (Phase.FAILED if failed else Phase.SUCCEEDED, 0, None)
        end[prerequisite] = max(end[one] for one in members)
    for task_id, named in graph.after.items():
        phase, attempt, code = state[task_id]
        counts[phase.name] = counts.get(phase.name, 0) + 1
        assert phase.terminal, task_id
        unmet = [one for one, when in named if not is_met(when, state[one][0])]
        if code == "DEPENDENCY_FAILED":
            assert unmet and attempt == 0, (task_id, named)
        elif first_claim[task_id] is not None:
            assert not unmet, (task_id, unmet)
            assert all(end[one] < first_claim[task_id] for one, _ in named), task_id
        else:
            assert task_id in graph.cancelled and phase is Phase.CANCELLED, (task_id, phase, code)
    left = await rows(
        "SELECT (SELECT count(*) FROM blocked_tasks) + (SELECT count(*) FROM dependency_backlog) "
        "+ (SELECT count(*) FROM dependencies WHERE open AND task_id = ANY (%s))",
        ids,
    )
    assert left == [(0,)], left
    return counts
