"""`make rates`: starts under two limits for a minute over two replicas, each window judged by the change log.

A played runner claims and ends what is admitted, so that creates, outcomes and the sweep of the leader meet
at the limits. No window may have more starts than allowed, and the minute has to use 99 % of them.
"""

from __future__ import annotations

import argparse
import asyncio
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from services.taskdb.tests.conftest import Caller, new_task
from services.taskdb.tests.rpc.limit_calls import create_limit, rate, uses
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard_taskdb.storage.migrate import upgrade
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.keys import insert_key
from tests.harness.postgres import migrated_template, postgres_server
from tests.harness.replication import server_folder
from tests.harness.taskdb_process import taskdb_process

SHARE = 0.99
# Windows' worth of tasks beyond the minute: some start while the others are created, and some always wait.
SPARE = 40
CREATES = 40
# When a task was admitted, which is when it entered the queue.
ADMITTED = """
SELECT resource_id, min(time) FROM change_log
WHERE resource_kind = 1 AND event IN (1, 24) AND pending_reason = 1 GROUP BY 1 ORDER BY 2
"""


@dataclass(frozen=True)
class Bound:
    """So many starts in any `per`, of the tasks whose ids begin with the prefix."""

    prefix: str
    count: int
    per: timedelta


@dataclass(frozen=True)
class Judged:
    """The most starts in any window, those of the measured time, and the share of the allowed rate."""

    bound: Bound
    most: int
    starts: int
    share: float

    @property
    def kept(self) -> bool:
        """Whether the promise holds."""
        return self.most <= self.bound.count and self.share >= SHARE

    def __str__(self) -> str:
        bound, seconds = self.bound, self.bound.per.total_seconds()
        return (
            f"{bound.prefix:8} {bound.count:4} in {seconds:g} s: at most {self.most} in any window, "
            f"{self.starts} starts, {100 * self.share:.2f} % of the allowed rate"
        )


def most_in_a_window(times: Sequence[datetime], per: timedelta) -> int:
    """The most starts in any span, which begins with one of them and does not contain its end."""
    last = per - timedelta(microseconds=1)
    return max((bisect_right(times, time + last) - n for n, time in enumerate(times)), default=0)


def judge(bound: Bound, times: Sequence[datetime], begin: datetime, seconds: float) -> Judged:
    """All windows are judged, and the share from `begin` on.

    Starts come in bursts of up to `count`, so the share is that of so many whole counts as began in the time.
    """
    first = bisect_left(times, begin)
    starts = bisect_right(times, begin + timedelta(seconds=seconds)) - first
    counts = (starts - 1) // bound.count
    took = times[first + counts * bound.count] - times[first]
    return Judged(bound, most_in_a_window(times, bound.per), starts, counts * bound.per / took)


async def create(callers: Sequence[Caller], bounds: Sequence[Bound], seconds: float) -> None:
    """Create what the bounds allow in that time and more, for all of them in turn, over both replicas."""
    made = []
    for bound in bounds:
        count = bound.count * (round(seconds / bound.per.total_seconds()) + SPARE)
        limit = bound.prefix if bound.prefix == "total" else f"keyed:{bound.prefix}"
        made += [(n / count, f"{bound.prefix}-{n}", limit) for n in range(count)]
    requests = [new_task(task_id=id, limits=uses(limit)) for _, id, limit in sorted(made)]
    for begin in range(0, len(requests), CREATES):
        page = requests[begin : begin + CREATES]
        await asyncio.gather(*(callers[n % 2].tasks.CreateTask(one) for n, one in enumerate(page)))


async def work(yard: Yard, done: asyncio.Event) -> None:
    """A runner that claims and ends what was admitted."""
    runner, _ = await yard.hello(lease_seconds=300)
    while not done.is_set():
        found = (await yard.claim(runner)).assignments
        if found:
            await yard.report(runner, *(report(one) for one in found for report in (started, succeeded)))
        else:
            await asyncio.sleep(0.05)


async def measure(url: str, addresses: Sequence[str], bounds: Sequence[Bound], seconds: float) -> datetime:
    """Let tasks wait, and wait until the time is over; when the measured time began."""
    keys = {kind: await insert_key(url, kind) for kind in (api_keys.TENANT, api_keys.SCHEDULER)}
    runner_key = await insert_key(url, api_keys.RUNNER)
    tenants = [Caller(address, keys[api_keys.TENANT].text) for address in addresses]
    schedulers = [Caller(address, keys[api_keys.SCHEDULER].text) for address in addresses]
    total, keyed = bounds[0], bounds[1]
    await create_limit(tenants[0], "total", starts=rate(total.count, total.per.total_seconds()))
    await create_limit(tenants[0], "keyed", starts_per_key=rate(keyed.count, keyed.per.total_seconds()))
    done = asyncio.Event()
    runner = asyncio.create_task(work(Yard(schedulers[1], tenants[1], runner_key.id), done))
    await create(tenants, bounds, seconds)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        row = await (await connection.execute("SELECT clock_timestamp()")).fetchone()
    assert row is not None
    await asyncio.sleep(seconds + total.per.total_seconds())
    done.set()
    await runner
    for caller in (*tenants, *schedulers):
        await caller.close()
    begin: datetime = row[0]
    return begin


def run(url: str, folder: Path, bounds: Sequence[Bound], seconds: float) -> list[Judged]:
    """Measure over two replicas, and judge."""
    with taskdb_process(url, folder / "one") as one, taskdb_process(url, folder / "two") as two:
        begin = asyncio.run(measure(url, (one.address, two.address), bounds, seconds))
    times: dict[str, list[datetime]] = defaultdict(list)
    with psycopg.connect(url) as connection:
        for task, time in connection.execute(ADMITTED).fetchall():
            times[task.partition("-")[0]].append(time)
    return [judge(bound, times[bound.prefix], begin, seconds) for bound in bounds]


def main() -> None:
    """Parse the arguments, run, print the figures; exits with 1 if a bound was not kept."""
    parser = argparse.ArgumentParser(prog="make rates", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--count", type=int, default=50, help="starts in each window, in total")
    parser.add_argument("--key-count", type=int, default=10, help="starts of each key in each window")
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--per", type=float, default=1.0, help="seconds of a window")
    given = parser.parse_args()
    per = timedelta(seconds=given.per)
    keys = [Bound(f"key{n}", given.key_count, per) for n in range(given.keys)]
    with server_folder("taskyard-rates-") as folder:
        for part in ("one", "two"):
            (folder / part).mkdir()
        with (
            postgres_server(folder / "postgres") as server,
            migrated_template(server, upgrade) as template,
            server.database(template) as url,
        ):
            found = run(url, folder, [Bound("total", given.count, per), *keys], given.seconds)
    print("\n".join(map(str, found)))
    if not all(one.kept for one in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
