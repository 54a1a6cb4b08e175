"""A rate of starts, live: the leader admits as much as it allows and never more in any window."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from datetime import datetime, timedelta

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.rpc.limit_calls import create_limit, rate, uses

# A shortened minute: so many starts in each span, watched for several spans.
COUNT, PER, SPANS = 40, timedelta(seconds=4), 4
# Of the starts that are allowed; a busy machine may be late in one try.
SHARE, TRIES = 0.99, 3


async def admissions(tenant: Caller, taskdb: RunningTaskDb, name: str) -> list[datetime]:
    """When the tasks of a limit that always has some waiting were admitted."""
    await create_limit(tenant, name, starts=rate(COUNT, PER.total_seconds()))
    total = COUNT * (SPANS + 1)
    for start in range(0, total, 20):
        await asyncio.gather(
            *(tenant.create(task_id=f"{name}-{n}", limits=uses(name)) for n in range(start, start + 20))
        )
    admitted = (
        "SELECT ready_time FROM tasks WHERE task_id LIKE %s AND pending_reason = 1 AND phase = 1 ORDER BY 1"
    )
    async with asyncio.timeout(10 * SPANS * PER.total_seconds()):
        while len(found := await taskdb.rows(admitted, f"{name}-%")) < total:
            await taskdb.rows("SELECT pg_sleep(0.2)")
    return [row[0] for row in found]


def most_in_a_window(times: list[datetime]) -> int:
    """The most admissions in any span, which begins with one of them and does not contain its end."""
    return max(
        bisect_right(times, time + PER - timedelta(microseconds=1)) - n for n, time in enumerate(times)
    )


async def test_starts_are_never_above_their_rate_and_use_it(tenant: Caller, taskdb: RunningTaskDb) -> None:
    shares = []
    for attempt in range(TRIES):
        times = await admissions(tenant, taskdb, f"api{attempt}")
        assert most_in_a_window(times) <= COUNT
        # The first of a span opens the way for the first of the next one.
        shares.append(SPANS * PER / (times[-1] - times[COUNT - 1]))
        if shares[-1] >= SHARE:
            break
    print(f"shares of the rate: {shares}")
    assert max(shares) >= SHARE, shares


def test_a_window_that_is_exceeded_is_found() -> None:
    begin = datetime(2026, 1, 1)
    times = [begin + n * PER / COUNT for n in range(3 * COUNT)]
    assert most_in_a_window(times) == COUNT
    assert most_in_a_window(sorted([*times, times[COUNT] + timedelta(microseconds=1)])) == COUNT + 1
