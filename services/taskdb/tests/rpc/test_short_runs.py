"""CompleteRuns: runs in columns, completed by one call of a function, and everything that it leaves."""

from __future__ import annotations

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Yard, short_runs
from taskyard.v1 import task_pb2
from tests.harness.logged_changes import LOGGED


async def test_short_runs_are_completed_in_columns(yard: Yard, taskdb: RunningTaskDb) -> None:
    names = await yard.create(5)
    runner, _ = await yard.hello()
    claimed = (await yard.claim(runner)).assignments
    assert await yard.complete(short_runs(runner, *claimed, exit_codes=[0] * 5)) == []
    for name in names:
        task = await yard.task(name)
        assert task.status.phase == task_pb2.TASK_PHASE_SUCCEEDED and task.status.attempt == 1
    assert await taskdb.rows("SELECT FROM leases") == []
    assert await taskdb.rows("SELECT completed_count, failed_count FROM runner_counts") == [(5, 0)]
    rows = await taskdb.rows(
        "SELECT array_agg((event, version, generation, attempt, phase, previous_phase, actor_id, runner_id, "
        f"exit_code)::text ORDER BY id) FROM {LOGGED} WHERE resource_kind = 1 GROUP BY resource_id"
    )
    print(rows[0])
    assert len(rows) == 5 and len({tuple(change[1:]) for (change,) in rows}) == 1, rows[:2]
