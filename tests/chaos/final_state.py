"""The state after a run: the database's log of changes and runs, and what users read of tasks and logs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg

from taskyard import Client, LogSource, errors
from tests.chaos.history import now
from tests.chaos.leadership import LeaderWrite, read_writes
from tests.chaos.topology import Topology
from tests.harness.invariants import breaches
from tests.harness.logged_changes import LOGGED

# The log of a run is stored at the latest this long after everything is healed.
LOG_SECONDS = 30.0
# Durability is a matter of the server's settings, which tests relax.
IGNORED_CHECKS = ("durability",)


class Change(NamedTuple):
    """A row of the log of changes, with its time by the clock of the history."""

    id: int
    t: float
    version: int
    generation: int
    attempt: int
    retry_count: int
    event: int
    phase: int
    checkpoint: int


class StoredRun(NamedTuple):
    """An ended run."""

    generation: int
    state: int
    runner: str
    t: float
    started: bool
    start_checkpoint: int


class Line(NamedTuple):
    """An entry of a task's log; `notice` is one that the runner wrote, about output that is missing."""

    generation: int
    sequence: int
    message: str
    notice: bool


@dataclass
class StoredTask:
    """A task as a user reads it, with its history in the database."""

    phase: int
    version: int = 0
    nonce: str = ""
    changes: list[Change] = field(default_factory=list)
    runs: dict[int, StoredRun] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    parent: str = ""


@dataclass
class FinalState:
    """Everything that the checker compares with the history."""

    tasks: dict[str, StoredTask] = field(default_factory=dict)
    breaches: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    leader_writes: list[LeaderWrite] = field(default_factory=list)
    # The seconds of the instants of each schedule, in the order of their events.
    instants: dict[str, list[int]] = field(default_factory=dict)


# Without rejected reports (event 23), which change nothing of the task.
CHANGES = f"""
SELECT resource_id, id, extract(epoch FROM time)::float8, version, generation, attempt, retry_count, event,
    phase, coalesce((details ->> 'checkpoint_sequence')::bigint, 0)
FROM {LOGGED} WHERE resource_kind = 1 AND event <> 23 AND tenant_id = 'default' ORDER BY id
"""
RUNS = """
SELECT task_id, generation, state, runner_id, extract(epoch FROM end_time)::float8, start_time IS NOT NULL,
    start_checkpoint
FROM ended_runs WHERE tenant_id = 'default' ORDER BY generation
"""
TASKS = """
SELECT t.task_id, coalesce(l.phase, t.phase), coalesce(l.version, t.version),
    coalesce(t.labels ->> 'nonce', ''), coalesce(t.parent_task_id, '')
FROM tasks t LEFT JOIN leases l USING (tenant_id, task_id) WHERE tenant_id = 'default'
"""
INSTANTS = """
SELECT resource_id, extract(epoch FROM (details ->> 'scheduled_time')::timestamptz)::bigint
FROM change_log WHERE resource_kind = 9 AND tenant_id = 'default' AND details ? 'scheduled_time' ORDER BY id
"""


def read_database(url: str) -> FinalState:
    """Tasks, changes and runs, in one snapshot."""
    # From the database's clock to that of the history.
    offset = now() - time.time()
    final = FinalState()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with connection.transaction():
            for task_id, phase, version, nonce, parent in connection.execute(TASKS):
                final.tasks[task_id] = StoredTask(phase, version, nonce, parent=parent)
            for task_id, id, t, *rest in connection.execute(CHANGES):
                if task_id in final.tasks:
                    final.tasks[task_id].changes.append(Change(id, t + offset, *rest))
            for task_id, generation, state, runner, t, started, start in connection.execute(RUNS):
                run = StoredRun(generation, state, runner, t + offset, started, start or 0)
                final.tasks[task_id].runs[generation] = run
            for schedule, second in connection.execute(INSTANTS):
                final.instants.setdefault(schedule, []).append(second)
        final.breaches = list(breaches(connection))
        final.leader_writes = read_writes(connection)
    return final


async def read_final_state(
    topology: Topology, names: Collection[str], expected: dict[tuple[str, int], int]
) -> FinalState:
    """These tasks with their logs, and the doctor's findings.

    `expected` is the last line that each run wrote.
    """
    final = await asyncio.to_thread(read_database, topology.url)
    final.tasks = {name: task for name, task in final.tasks.items() if name in names}
    deadline = now() + LOG_SECONDS
    async with topology.client() as client:
        for name, task in final.tasks.items():
            wanted = {gen: last for (owner, gen), last in expected.items() if owner == name}
            task.lines = await _read_log(client, name, wanted, deadline)
    if "admin" in topology.keys:
        async with topology.client("admin") as admin:
            response = await admin.admin.doctor()
            final.findings = [
                f"{finding.check}: {finding.message}"
                for finding in response.findings
                if finding.count > finding.repaired_count and finding.check not in IGNORED_CHECKS
            ]
    return final


async def _read_log(client: Client, task: str, expected: dict[int, int], deadline: float) -> list[Line]:
    """The log once it has what the runs wrote, or as it is when the time is over."""
    while True:
        try:
            lines = [
                Line(e.generation, e.sequence, e.message, e.source is LogSource.RUNNER)
                async for e in client.logs(task)
            ]
        except errors.TaskyardError:
            if now() > deadline:
                raise
            lines = []
        if now() > deadline or not missing_runs(lines, expected):
            return lines
        await asyncio.sleep(0.5)


def missing_runs(lines: list[Line], expected: dict[int, int]) -> list[int]:
    """Generations whose last line is not in the log, and no notice says why."""
    has = {(line.generation, line.message) for line in lines}
    noticed = {line.generation for line in lines if line.notice}
    return [
        gen
        for gen, last in expected.items()
        if last and (gen, f"line {last}") not in has and gen not in noticed
    ]
