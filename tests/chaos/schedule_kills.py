"""Kills the leader and PostgreSQL under schedules of one second, then checks the events of every instant."""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from services.taskdb.tests.rpc.schedule_calls import schedule
from taskyard.v1 import schedule_pb2, schedule_service_pb2
from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.caller import Caller
from tests.harness.invariants import assert_invariants
from tests.harness.keys import insert_key
from tests.harness.processes import Service
from tests.harness.replication import Node, server_folder
from tests.harness.taskdb_process import taskdb_service

FLAGS = ("--leader-ttl", "1s")
PARENT = "tenants/default"
# A kill of PostgreSQL among so many kills of the leader.
POSTGRES_EVERY = 5
# Longer than two instants of a schedule, so that some are missed.
OUTAGE = 2.5
EVENTS = (105, 106, 107)
PATIENCE = 120.0


@dataclass
class Outcome:
    """What a run found: counts of its events, and everything that contradicts the promise."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


async def run(kills: int, schedules: int, seed: int, folder: Path) -> Outcome:
    """Kill so often, then let the survivors handle what is due, and compare."""
    rng = random.Random(seed)
    node = Node(folder / "primary")
    replicas: list[Service] = []
    try:
        await asyncio.to_thread(node.initialise)
        await asyncio.to_thread(migrate.upgrade, node.url())
        replicas = [taskdb_service(node.url(), folder, *FLAGS, name=f"replica-{n}") for n in range(2)]
        for replica in replicas:
            await asyncio.to_thread(replica.start)
        first = await _create(node, replicas[0], schedules)
        outcome = Outcome()
        for number in range(kills):
            await asyncio.sleep(rng.uniform(0.1, 1.5))
            _restart(replicas)
            if number % POSTGRES_EVERY == POSTGRES_EVERY - 1:
                await asyncio.to_thread(node.kill)
                await asyncio.sleep(OUTAGE)
                await asyncio.to_thread(node.start)
                outcome.counts["kills of PostgreSQL"] += 1
            else:
                leader = await _leader(node, replicas)
                leader.kill()
                outcome.counts["kills of the leader"] += 1
                # Not awaited: the other replica leads meanwhile, however slow the machine is.
                leader.start(wait=False)
            if number % 20 == 19:
                print(f"{number + 1} kills", flush=True)
        await _until_handled(node, replicas)
        for replica in replicas:
            replica.terminate()
        _compare(node, first, outcome)
        assert_invariants(node.url())
        return outcome
    finally:
        for replica in replicas:
            replica.stop()
        node.stop()


async def _create(node: Node, replica: Service, count: int) -> dict[str, datetime]:
    """Schedules of one second with every policy; the first instant of each."""
    key = await insert_key(node.url(), api_keys.TENANT)
    caller = Caller(replica.address, key.text)
    found: dict[str, datetime] = {}
    for number in range(count):
        made = schedule(
            overlap=1 + number % 5,
            missed=1 + number // 5 % 3,
            jitter=0.3 if number % 2 else 0,
            catch_up_window=3600,
        )
        request = schedule_service_pb2.CreateScheduleRequest(
            parent=PARENT, schedule_id=f"s{number}", schedule=made
        )
        stored: schedule_pb2.Schedule = (await caller.schedules.CreateSchedule(request)).schedule
        found[f"s{number}"] = stored.next_scheduled_time.ToDatetime()
    await caller.close()
    return found


async def _leader(node: Node, replicas: list[Service]) -> Service:
    """The replica that holds the newest term."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for replica in replicas:
            [(epoch,)] = node.execute("SELECT epoch FROM coordinator_state WHERE key = 'leader_lock'")
            if f'"leadership_acquired", "term": {epoch}' in replica.log_text():
                return replica
        await asyncio.sleep(0.05)
    raise AssertionError("no replica leads")


def _restart(replicas: list[Service]) -> None:
    """Start those again that ended because PostgreSQL was away when they started, as a supervisor does."""
    for replica in replicas:
        if replica.ended:
            replica.start(wait=False)


async def _until_handled(node: Node, replicas: list[Service]) -> None:
    """Wait until the cursors have passed a moment after the last kill, as long as one of them moves."""
    end = time.monotonic() + PATIENCE
    [(moment,)] = node.execute("SELECT clock_timestamp() + interval '2 seconds'")
    before: list[tuple[object, ...]] = []
    while time.monotonic() < end:
        with psycopg.connect(node.url()) as connection:
            rows = connection.execute(
                "SELECT schedule_id, next_scheduled_time FROM schedules WHERE next_scheduled_time <= %s "
                "ORDER BY 1",
                (moment,),
            ).fetchall()
        if not rows:
            return
        if rows != before:
            before, end = rows, time.monotonic() + PATIENCE
        _restart(replicas)
        await asyncio.sleep(0.2)
    raise AssertionError(f"{len(before)} schedules have instants that are still due: {before[:3]}")


def _compare(node: Node, first: dict[str, datetime], outcome: Outcome) -> None:
    with psycopg.connect(node.url()) as connection:
        rows = connection.execute(
            "SELECT resource_id, event, details ->> 'scheduled_time', details ->> 'task' FROM changes "
            "WHERE resource_kind = 9 AND event = ANY(%s)",
            (list(EVENTS),),
        ).fetchall()
        rows_of_cursors = connection.execute(
            "SELECT schedule_id, next_scheduled_time AT TIME ZONE 'UTC' FROM schedules"
        ).fetchall()
        cursors: dict[str, datetime] = {row[0]: row[1] for row in rows_of_cursors}
        tasks = {row[0] for row in connection.execute("SELECT task_id FROM tasks").fetchall()}
    events: dict[str, list[str]] = {name: [] for name in first}
    fired: list[str] = []
    for name, event, instant, task in rows:
        events[name].append(instant)
        outcome.counts[{105: "fired", 106: "skipped", 107: "missed"}[event]] += 1
        if task:
            fired.append(task.rpartition("/")[2])
    for name, begin in first.items():
        seconds = int((cursors[name] - begin).total_seconds())
        due = [f"{begin + timedelta(seconds=n):%Y-%m-%dT%H:%M:%SZ}" for n in range(seconds)]
        twice = [instant for instant, count in Counter(events[name]).items() if count > 1]
        without = sorted(set(due) - set(events[name]))
        strange = sorted(set(events[name]) - set(due))
        for what, instants in (("twice", twice), ("without an event", without), ("not due", strange)):
            if instants:
                outcome.problems.append(f"{name}: {what}: {instants[:5]} of {len(instants)}")
        outcome.counts["due instants"] += seconds
    if len(fired) != len(set(fired)) or set(fired) != tasks:
        outcome.problems.append(f"{len(fired)} fired, {len(tasks)} tasks, {len(set(fired) ^ tasks)} differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--schedules", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with server_folder("taskyard-schedules-") as folder:
        outcome = asyncio.run(run(options.kills, options.schedules, options.seed, folder))
    for what, count in outcome.counts.items():
        print(f"{count:9,} {what}")
    for problem in outcome.problems:
        print(f"problem: {problem}")
    if outcome.problems:
        raise SystemExit(1)
    print("every due instant has exactly one event, and none fired twice")


if __name__ == "__main__":
    main()
