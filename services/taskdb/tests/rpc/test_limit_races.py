"""Limits over two replicas: creates, claims and outcomes that race never exceed them; counts are exact."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard, run_taskdb
from services.taskdb.tests.rpc.limit_calls import create_limit, get_limit, rate, uses
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard import errors
from taskyard.v1 import task_service_pb2
from taskyard_taskdb.storage.limit import backlog
from taskyard_taskdb.storage.tenant import api_keys

TASKS = 200
TOTAL, PER_KEY, KEYS = 7, 3, 4
ROUNDS = 4


class Watcher:
    """Counts at every moment what runs, as the runners see it."""

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.ended = 0
        self.most_total = self.most_of_key = 0

    def begin(self, key: str) -> None:
        self.running[key] = self.running.get(key, 0) + 1
        self.most_total = max(self.most_total, sum(self.running.values()))
        self.most_of_key = max(self.most_of_key, self.running[key])

    def end(self, key: str) -> None:
        self.running[key] -= 1
        self.ended += 1


async def work(yard: Yard, watcher: Watcher, seed: int) -> None:
    """A runner that claims, runs and reports until all tasks have ended."""
    rng = random.Random(seed)
    runner, _ = await yard.hello(f"runner-{seed}", lease_seconds=300)
    while watcher.ended < TASKS:
        assignments = (await yard.claim(runner)).assignments
        keys = [one.spec.limits[0].key for one in assignments]
        for key in keys:
            watcher.begin(key)
        if not assignments:
            await asyncio.sleep(0.02)
        for key, one in zip(keys, assignments, strict=True):
            # Before the report: what is reported may be admitted elsewhere at once.
            watcher.end(key)
            end = succeeded(one) if rng.random() < 0.8 else failed(one, permanent=True)
            await yard.report(runner, started(one), end)


async def create(caller: Caller, number: int) -> None:
    """A task with one limit or two."""
    limits = uses(f"api:k{number // 2 % KEYS}", *(["other"] if number % 3 == 0 else []))
    await caller.create(task_id=f"t{number}", limits=limits)


async def meddle(tenants: Sequence[Caller]) -> None:
    """Pause and resume some tasks that have not ended."""
    for number in range(0, TASKS, 10):
        pause = task_service_pb2.PauseTaskRequest(name=f"tenants/default/tasks/t{number}")
        try:
            await tenants[number // 10 % 2].tasks.PauseTask(pause)
        except (errors.NotFound, errors.FailedPrecondition):
            continue
        await tenants[0].tasks.ResumeTask(task_service_pb2.ResumeTaskRequest(name=pause.name))


async def test_200_racing_tasks_over_two_replicas_never_exceed_a_limit(
    taskdb: RunningTaskDb, tenant: Caller, scheduler: Caller, database_url: str
) -> None:
    await create_limit(tenant, "api", max_running=TOTAL, max_running_per_key=PER_KEY)
    await create_limit(tenant, "other", max_running=TOTAL)
    # No transaction may count more, at any moment.
    await taskdb.execute(f"ALTER TABLE limits ADD CONSTRAINT exact CHECK (held <= {TOTAL})")
    await taskdb.execute(
        f"ALTER TABLE limit_keys ADD CONSTRAINT exact CHECK (held <= {PER_KEY} OR limit_id = 'other')"
    )
    async for second in run_taskdb(database_url):
        tenants = [tenant, await second.caller(api_keys.TENANT, "default")]
        yards = [
            await make_yard(taskdb, scheduler, tenant),
            await make_yard(second, await second.caller(api_keys.SCHEDULER), tenants[1], "scheduler-2"),
        ]
        watcher = Watcher()

        async with asyncio.timeout(180):
            await asyncio.gather(*(create(tenants[number % 2], number) for number in range(TASKS)))
            workers = [work(yards[number % 2], watcher, number) for number in range(4)]
            await asyncio.gather(*workers, meddle(tenants))
        assert watcher.most_total <= TOTAL
        assert watcher.most_of_key <= PER_KEY
        assert watcher.most_total >= 3, "they did not run at the same time"
        rows = await taskdb.rows("SELECT phase, count(*) FROM tasks GROUP BY 1")
        assert sum(count for phase, count in rows if phase >= 10) == TASKS
        assert (await get_limit(tenant, "api")).running_units == 0
        assert await taskdb.rows("SELECT count(*) FROM task_limits WHERE held OR wait_time IS NOT NULL") == [
            (0,)
        ]
        assert await taskdb.rows("SELECT count(*) FROM limit_keys") == [(0,)]


async def test_200_claims_that_race_over_two_replicas_get_what_the_limit_admits(
    taskdb: RunningTaskDb, tenant: Caller, scheduler: Caller, database_url: str
) -> None:
    await create_limit(tenant, "api", max_running=TOTAL, max_running_per_key=PER_KEY)
    async for second in run_taskdb(database_url):
        tenants = [tenant, await second.caller(api_keys.TENANT, "default")]
        yards = [
            await make_yard(taskdb, scheduler, tenant),
            await make_yard(second, await second.caller(api_keys.SCHEDULER), tenants[1], "scheduler-2"),
        ]
        await asyncio.gather(
            *(tenants[n % 2].create(task_id=f"t{n}", limits=uses(f"api:k{n // 2 % KEYS}")) for n in range(60))
        )
        runners = [(await yard.hello(f"runner-{n}", lease_seconds=300))[0] for n, yard in enumerate(yards)]
        lanes = await yards[0].lane_claims()
        for _ in range(ROUNDS):
            results = await asyncio.gather(
                *(yards[n % 2].claim(runners[n % 2], 1, lanes=lanes, lease_seconds=300) for n in range(200))
            )
            claimed = [(n % 2, one) for n, result in enumerate(results) for one in result.assignments]
            keys = Counter(one.spec.limits[0].key for _, one in claimed)
            assert len(claimed) == TOTAL and max(keys.values()) <= PER_KEY, keys
            # Ends that race admit the next ones.
            await asyncio.gather(
                *(yards[n].report(runners[n], started(one), succeeded(one)) for n, one in claimed)
            )
            while (await taskdb.pool.run(backlog.advance)).count:
                pass
        assert await taskdb.rows("SELECT count(*) FROM tasks WHERE end_time IS NOT NULL") == [
            (ROUNDS * TOTAL,)
        ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_running": 5}, 5),
        ({"max_running_per_key": 5}, 10),
        ({"starts": rate(5, 3600)}, 5),
        ({"starts_per_key": rate(5, 3600)}, 10),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_creates_that_race_are_admitted_up_to_the_limit(
    taskdb: RunningTaskDb, tenant: Caller, database_url: str, fields: dict[str, Any], expected: int
) -> None:
    await create_limit(tenant, "api", **fields)
    async for second in run_taskdb(database_url):
        callers = [tenant, await second.caller(api_keys.TENANT, "default")]
        await asyncio.gather(
            *(callers[n % 2].create(task_id=f"t{n}", limits=uses(f"api:k{n // 2 % 2}")) for n in range(60))
        )
        assert await taskdb.rows("SELECT count(*) FROM queue") == [(expected,)]
        assert (await get_limit(tenant, "api")).running_units == expected
