"""Applies reports of holders: plain successes in one statement, everything else as the lifecycle decides.

Each report has its own result. Reports of one task are applied in their order, and either all of them here or
all of them there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum
from random import Random
from typing import Any, NamedTuple

from taskyard.errors import (
    FieldInvalid,
    InvalidArgument,
    LeaseNotHeld,
    NotFound,
    StaleGeneration,
    StorageUnavailable,
    TaskTerminal,
    TaskyardError,
)
from taskyard_kit.logs import get_log
from taskyard_taskdb import failpoints
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import HolderEvent, ProgressReported, Started, Succeeded, runner
from taskyard_taskdb.domain.report import EndedRun, applied_before
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import ActorType, Phase, RunState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.batch import POISON, isolate
from taskyard_taskdb.storage.change_log.append import TASK, ChangeRow, insert_changes
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Row, Tx
from taskyard_taskdb.storage.report.rejections import RecordedRejections, RejectedRun, rejection
from taskyard_taskdb.storage.report.waits import Waits
from taskyard_taskdb.storage.runner import runners
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import StateMoved, load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.write import free_slots, write

log = get_log(__name__)

# status.details: what is stored and what was reported, both serialised, put together.
MergeDetails = Callable[[bytes | None, bytes], bytes]


class ReportKind(IntEnum):
    """The kind of a report, as far as the common path needs it."""

    STARTED = 1
    SUCCEEDED = 2
    OTHER = 3


class Report(NamedTuple):
    """One report. A start or a success is held in columns, any other event in `other`.

    With `starts`, an outcome that came together with its start, of `start_time`. `details` are those of the
    report alone, the event's are set when they are merged with the stored ones.
    """

    key: Key
    runner_id: str
    generation: int
    lease_id: int
    kind: ReportKind
    time: datetime | None = None
    checkpoint_sequence: int = 0
    result: bytes | None = None
    exit_code: int | None = None
    details: bytes | None = None
    log_sequence: int | None = None
    other: HolderEvent | None = None
    starts: bool = False
    start_time: datetime | None = None

    def event(self) -> HolderEvent:
        """The report as the lifecycle understands it, without the start that came with it."""
        if self.other is not None:
            return self.other
        if self.kind is ReportKind.STARTED:
            return self._start(self.time)
        return Succeeded(result=self.result, exit_code=self.exit_code, time=self.time, **self._holder())

    def start_event(self) -> Started | None:
        """The start that came with an outcome."""
        return self._start(self.start_time) if self.starts else None

    def after(self, start: Report) -> Report:
        """This outcome together with its start, which came as a report of its own."""
        return self._replace(
            starts=True, start_time=start.time, checkpoint_sequence=start.checkpoint_sequence
        )

    def _start(self, time: datetime | None) -> Started:
        return Started(checkpoint_sequence=self.checkpoint_sequence, time=time, **self._holder())

    def _holder(self) -> dict[str, Any]:
        return {
            "actor": runner(self.runner_id),
            "runner_id": self.runner_id,
            "generation": self.generation,
            "lease_id": self.lease_id,
        }


@dataclass(frozen=True, slots=True)
class Applied:
    """The phase after a report, and whether it had been applied before."""

    phase: Phase
    duplicate: bool = False


Outcome = Applied | TaskyardError

_STARTED = Applied(Phase.RUNNING)
_SUCCEEDED = Applied(Phase.SUCCEEDED)

_REJECTIONS = (LeaseNotHeld, StaleGeneration, TaskTerminal)


class ReportWriter:
    """Applies reports and publishes what they changed."""

    def __init__(self, pool: Pool, bus: Bus, merge_details: MergeDetails) -> None:
        self._pool = pool
        self._bus = bus
        self._merge_details = merge_details
        self._recorded = RecordedRejections()

    async def apply(self, reports: Sequence[Report]) -> list[Outcome]:
        """One outcome per report, in order. An error is final for its report."""
        outcomes: dict[int, Outcome] = {}
        groups = _by_task(reports)
        plain = {key: success for key, group in groups.items() if (success := _plain(reports, group))}
        if plain:
            for key in await self._complete(plain):
                group = groups.pop(key)
                outcomes[group[0]] = _STARTED
                outcomes[group[-1]] = _SUCCEEDED
        if groups:
            await self._decide(reports, groups, outcomes)
        return [outcomes[n] for n in range(len(reports))]

    async def _complete(self, plain: Mapping[Key, Report]) -> list[Key]:
        """The tasks of plain successes that are done; the others are decided one by one."""
        successes = [plain[key] for key in sorted(plain)]
        try:
            done, notice = await self._pool.run(lambda tx: _complete_plain(tx, successes))
        except POISON:
            return []
        self._bus.publish(notice)
        await failpoints.REPORT_AFTER_COMMIT.reach()
        return done

    async def _decide(
        self, reports: Sequence[Report], groups: Mapping[Key, list[int]], outcomes: dict[int, Outcome]
    ) -> None:
        """Apply the groups in one transaction; one that the database refuses does not fail the others."""

        async def apply(keys: Sequence[Key]) -> None:
            part = {key: groups[key] for key in keys}
            found, notice, recorded = await self._pool.run(lambda tx: self._transact(tx, reports, part))
            self._recorded.add(recorded)
            await failpoints.REPORT_AFTER_COMMIT.reach()
            outcomes.update(found)
            self._bus.publish(notice)

        def reject(key: Key, error: Exception) -> None:
            outcomes.update((n, _refusal(error)) for n in groups[key])

        await isolate(sorted(groups), apply, reject)

    async def _transact(
        self, tx: Tx, reports: Sequence[Report], groups: Mapping[Key, list[int]]
    ) -> tuple[dict[int, Outcome], CommitNotice, Iterable[RejectedRun]]:
        waits = Waits.of((reports[n].key, reports[n].other) for group in groups.values() for n in group)
        loaded = await load_for_update(tx, [*groups, *waits.named_tasks()] if waits.named else groups)
        await waits.read_children(tx)
        rng = Random()
        outcomes: dict[int, Outcome] = {}
        transitions: list[Transition] = []
        tasks = dict(loaded.tasks)
        for key, group in waits.last(groups):
            for n in group:
                task = tasks.get(key)
                if task is None:
                    outcomes[n] = NotFound("task", f"tenants/{key[0]}/tasks/{key[1]}")
                    continue
                if (start := reports[n].start_event()) is not None:
                    # Where the start is rejected, the outcome is judged as one that came without it.
                    with contextlib.suppress(TaskyardError):
                        transitions.append(lifecycle.apply(task, start, loaded.now, rng))
                        task = tasks[key] = transitions[-1].task
                try:
                    event = self._with_details(reports[n], task)
                    if key in waits.named:
                        event = await waits.judge(tx, key, event, tasks)
                    step = lifecycle.apply(task, event, loaded.now, rng)
                except TaskyardError as error:
                    outcomes[n] = error
                    continue
                outcomes[n] = Applied(step.task.phase, step.duplicate)
                tasks[key] = step.task
                transitions.append(step)
                waits.accept(key, event, step)
        await waits.store(tx, loaded)
        log_sequences = {reports[n].key: reports[n].log_sequence for group in groups.values() for n in group}
        notice = await write(tx, transitions, log_sequences=log_sequences)
        # After the write: the first of two equal reports may be in this very batch.
        late = await _recognise_repeats(tx, reports, tasks, outcomes)
        late = {run: error for run, error in late.items() if self._recorded.admits(run, loaded.now)}
        changes = [
            rejection(tasks[run.key], runner(run.runner_id), loaded.now, error, run)
            for run, error in late.items()
        ]
        await insert_changes(tx, changes)
        await failpoints.REPORT_BEFORE_COMMIT.reach()
        return outcomes, notice, late

    def _with_details(self, report: Report, task: TaskState) -> HolderEvent:
        """The event of a report. Raises InvalidArgument for progress whose details cannot be stored.

        A start or an outcome is applied without such details, as it must not be lost with them.
        """
        event = report.event()
        if report.details is None:
            return event
        try:
            return replace(event, details=self._merge_details(task.details, report.details))
        except InvalidArgument as error:
            if isinstance(event, ProgressReported):
                raise
            extra = {"task": task.name, "generation": report.generation, "error": str(error)}
            log.warning("details_dropped", **extra)
            return event


def _refusal(error: Exception) -> TaskyardError:
    """Why reports of one task could not be stored: a lock timeout is transient, a bad value is final."""
    if isinstance(error, TaskyardError):
        return StorageUnavailable("not applied")
    return FieldInvalid.of("report", f"cannot be stored: {str(error).splitlines()[0]}")


async def _recognise_repeats(
    tx: Tx, reports: Sequence[Report], tasks: Mapping[Key, TaskState], outcomes: dict[int, Outcome]
) -> dict[RejectedRun, TaskyardError]:
    """Acknowledge rejected reports that repeat one that was applied to a run that has ended.

    Returns why others were rejected, once for each run that the reporter had held: nobody leaves a trace in
    the audit trail of a task that it never ran.
    """
    late: dict[RejectedRun, TaskyardError] = {}
    rejected = {n: outcome for n, outcome in outcomes.items() if isinstance(outcome, _REJECTIONS)}
    if not rejected:
        return late
    runs = await find_runs(tx, [(*reports[n].key, reports[n].generation) for n in rejected])
    for n, error in rejected.items():
        report = reports[n]
        run = runs.get((*report.key, report.generation))
        if run is None:
            continue
        if applied_before(report.event(), run):
            outcomes[n] = Applied(tasks[report.key].phase, duplicate=True)
        elif (run.runner_id, run.lease_id) == (report.runner_id, report.lease_id):
            late.setdefault(RejectedRun(report.runner_id, report.key, report.generation), error)
    return late


def _by_task(reports: Sequence[Report]) -> dict[Key, list[int]]:
    groups: dict[Key, list[int]] = {}
    for n, report in enumerate(reports):
        groups.setdefault(report.key, []).append(n)
    return groups


def _plain(reports: Sequence[Report], group: Sequence[int]) -> Report | None:
    """The success of a task, if it came without details, and alone or right after its start."""
    last = reports[group[-1]]
    if last.kind is not ReportKind.SUCCEEDED or last.details is not None or len(group) > 2:
        return None
    if len(group) == 1:
        return last
    first = reports[group[0]]
    if first.kind is not ReportKind.STARTED or first.details is not None or first.lease_id != last.lease_id:
        return None
    return last.after(first)


async def _complete_plain(tx: Tx, successes: Sequence[Report]) -> tuple[list[Key], CommitNotice]:
    """The tasks that were completed, and the notice of it; the lifecycle decides about the others.

    `successes` are in the order of their keys.
    """
    rows = await tx.fetch(statement("complete_plain"), _plain_params(successes))
    if not rows:
        return [], CommitNotice()
    ended, tenants = rows[0][-2:]
    if ended != len(rows):
        raise StateMoved("a task that had ended still had a lease")
    keys = [success.key for success in successes]
    timed = [keys[n - 1] for n, is_timed, *_ in rows if is_timed]
    if timed:
        await _clear_timers(tx, timed)
    freed = {(keys[n - 1][0], slot): keys[n - 1][1] for n, *_, slot, _, _ in rows if slot is not None}
    notice, promotions = await free_slots(tx, freed) if freed else (CommitNotice(), [])
    notice.tenants.update(tenants or ())
    notice.used += [(keys[n - 1][0], seconds, 1) for n, *_, seconds, _, _, _ in rows]
    await runners.count_outcomes(tx, ((successes[row[0] - 1].runner_id, RunState.SUCCEEDED) for row in rows))
    await insert_changes(tx, [*_success_changes(rows, successes), *promotions])
    await failpoints.REPORT_BEFORE_COMMIT.reach()
    return [keys[n - 1] for n, *_ in rows], notice


def _success_changes(rows: Sequence[Row], successes: Sequence[Report]) -> list[ChangeRow]:
    """The changes of plain successes; from SCHEDULED, the row stands for the start as well."""
    changes: list[ChangeRow] = []
    for n, _, now, version, attempt, retry_count, runner_loss_count, *_ in rows:
        report = successes[n - 1]
        # Positional, because this is the hottest loop.
        ids = (*report.key, report.runner_id, report.runner_id, None, None, None)
        counts = (None, attempt, retry_count, runner_loss_count)
        event = _START_AND_SUCCESS if report.starts else _SUCCESS
        changes.append(
            ChangeRow(
                now,
                version + 1 + report.starts,
                report.generation,
                *counts,
                report.exit_code,
                TASK,
                *event,
                *ids,
            )
        )
    return changes


# Event, actor, phase, phase before, pending reason.
_SUCCESS = (
    ChangeEvent.TASK_SUCCEEDED.value,
    ActorType.RUNNER.value,
    Phase.SUCCEEDED.value,
    Phase.RUNNING.value,
    0,
)
_START_AND_SUCCESS = (*_SUCCESS[:3], Phase.SCHEDULED.value, 0)


def _plain_params(successes: Sequence[Report]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([report.key[0] for report in successes]),
        "task_ids": arrays.texts([report.key[1] for report in successes]),
        "generations": arrays.bigints([report.generation for report in successes]),
        "lease_ids": arrays.bigints([report.lease_id for report in successes]),
        "runner_ids": arrays.texts([report.runner_id for report in successes]),
        "starts": arrays.bools([report.starts for report in successes]),
        "start_times": arrays.timestamps([report.start_time for report in successes]),
        "end_times": arrays.timestamps([report.time for report in successes]),
        "results": arrays.byteas([report.result for report in successes]),
        "exit_codes": arrays.integers([report.exit_code for report in successes]),
        "checkpoints": arrays.bigints([report.checkpoint_sequence for report in successes]),
        "log_sequences": arrays.bigints([report.log_sequence for report in successes]),
    }


async def _clear_timers(tx: Tx, keys: Iterable[Key]) -> None:
    gone = list(keys)
    params = {
        "tenant_ids": arrays.texts([key[0] for key in gone]),
        "task_ids": arrays.texts([key[1] for key in gone]),
        "kinds": arrays.smallints([0] * len(gone)),
    }
    await tx.execute(statement("clear_timers"), params)


RunKey = tuple[str, str, int]
"""Tenant, task and generation."""


async def find_runs(tx: Tx, keys: Sequence[RunKey]) -> dict[RunKey, EndedRun]:
    """Those of the runs that have ended."""
    params = {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
        "generations": arrays.bigints([key[2] for key in keys]),
    }
    rows = await tx.fetch(statement("find_runs"), params)
    return {
        (tenant_id, task_id, generation): EndedRun(lease_id, runner_id, RunState(state), started)
        for tenant_id, task_id, generation, lease_id, runner_id, state, started in rows
    }
