"""The checks of RunDoctor: each has a query for violations of an invariant, and a repair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.names import group_name, limit_name, schedule_name, task_name, tenant_name
from taskyard_taskdb.storage.batch import isolate
from taskyard_taskdb.storage.doctor import repairs
from taskyard_taskdb.storage.doctor.repairs import (
    Repair,
    RepairContext,
    RepairNotPossible,
    in_transaction,
    run_statements,
)
from taskyard_taskdb.storage.housekeeping.partitions import COLUMNS, stray_months
from taskyard_taskdb.storage.limit import repair as limit_repair
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.slot import repair as slot_repair
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters
from taskyard_taskdb.storage.transition.task_rows import Key

log = get_log(__name__)

EXAMPLES = 10
PAGE = 1000
# Claims read past what ended since the oldest transaction began: longer than any of ours may last.
OLD_TRANSACTION = timedelta(minutes=15)
# A check scans whole tables: it needs a longer timeout than the hot path.
_TIMEOUT = "SET LOCAL statement_timeout = '10min'"


class Severity(IntEnum):
    """The severity of a finding (DoctorSeverity)."""

    NONE = 0
    NOTICE = 1
    WARNING = 2
    ERROR = 3


Find = Callable[[Tx], Awaitable[list[Key]]]
FindAcknowledged = Callable[[Tx, Sequence[Key]], Awaitable[set[Key]]]
Name = Callable[[Key], str]


async def _none_acknowledged(tx: Tx, found: Sequence[Key]) -> set[Key]:
    return set()


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant; `about` describes its violations.

    `acknowledged` returns the findings that an administrator has acknowledged. An `only_by_name` check is
    repaired only if the request names it.
    """

    name: str
    severity: Severity
    about: str
    find: Find
    repair: Repair
    display_name: Name = lambda key: task_name(*key)
    acknowledged: FindAcknowledged = _none_acknowledged
    only_by_name: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: how many violations were found, acknowledged, repaired, and remain."""

    check: Check
    count: int
    acknowledged: int
    repaired: int
    remaining: int
    examples: tuple[str, ...]
    # Why no repair was made.
    note: str = ""

    @property
    def severity(self) -> Severity:
        """The severity of the check; NOTICE if all violations are acknowledged."""
        if self.count > self.acknowledged:
            return self.check.severity
        return Severity.NOTICE if self.count else Severity.NONE


def _query(name: str) -> Find:
    async def find(tx: Tx) -> list[Key]:
        return [(row[0], row[1]) for row in await tx.fetch(statement(name), prepare=False)]

    return find


async def find_old_transactions(tx: Tx, age: timedelta = OLD_TRANSACTION) -> list[Key]:
    """The sessions, and prepared transactions, whose snapshot is older than this."""
    rows = await tx.fetch(statement("doctor_old_transactions"), {"age": age}, prepare=False)
    return [(row[0], row[1]) for row in rows]


async def _wrong_counters(tx: Tx) -> list[Key]:
    return [(off.tenant_id, "") for off in await counters.compare(tx)]


async def _months_in_default(tx: Tx) -> list[Key]:
    return [
        ("system", f"{table} {month:%Y-%m}") for table in COLUMNS for month in await stray_months(tx, table)
    ]


def _second(key: Key) -> str:
    return key[1]


# In this order: later repairs rely on earlier ones.
CHECKS = (
    Check(
        "lease-without-task", Severity.ERROR, "leases of tasks that have ended or do not exist",
        _query("doctor_leases_without_task"), run_statements("doctor_lock_leases", "doctor_delete_leases"),
    ),
    Check(
        "running-without-lease", Severity.ERROR, "running tasks without a lease",
        _query("doctor_running_without_lease"), in_transaction(repairs.redistribute),
    ),
    Check(
        "queue-row-without-task", Severity.WARNING, "queue rows whose task cannot be claimed by them",
        _query("doctor_queue_without_task"), run_statements("doctor_lock_queue", "doctor_dequeue"),
    ),
    Check(
        "task-without-queue-row", Severity.ERROR, "tasks that wait to be claimed and are not in the queue",
        _query("doctor_claimable_without_queue"), in_transaction(repairs.enqueue),
    ),
    Check(
        "lease-without-session", Severity.ERROR, "leases of sessions that do not exist",
        _query("doctor_leases_without_session"), in_transaction(repairs.expire),
    ),
    Check(
        "lease-overdue", Severity.WARNING, "leases that expired minutes ago and still exist",
        _query("doctor_leases_overdue"), in_transaction(repairs.expire),
    ),
    Check(
        "holder-without-slot", Severity.ERROR, "tasks that hold a slot whose head is another task",
        _query("doctor_holders_without_slot"), in_transaction(repairs.settle_slots_of),
    ),
    Check(
        "slot-without-head", Severity.WARNING, "slots whose head does not hold them, or that have none",
        _query("doctor_slots_without_head"), in_transaction(slot_repair.repair),
        lambda key: f"{tenant_name(key[0])}/slots/{key[1]}",
    ),
    Check(
        "delay-without-timer", Severity.ERROR, "delayed or retried tasks without a timer",
        _query("doctor_waiting_without_timer"), run_statements("doctor_lock_tasks", "doctor_set_timers"),
    ),
    Check(
        "timer-without-task", Severity.NOTICE, "timers of tasks that have ended or do not exist",
        _query("doctor_timers_without_task"),
        run_statements("doctor_lock_tasks", "doctor_lock_timers", "doctor_delete_timers"),
    ),
    Check(
        "dependencies", Severity.ERROR,
        "tasks that wait for prerequisites that have ended, or whose count of these is wrong",
        _query("doctor_dependencies"), in_transaction(repairs.settle_dependencies),
    ),
    Check(
        "groups", Severity.ERROR, "groups whose counts differ from a recount, or whose parent has ended",
        _query("doctor_groups"), run_statements("doctor_lock_groups", "doctor_recount_groups"),
        lambda key: group_name(*key),
    ),
    Check(
        "limited-tasks", Severity.ERROR,
        "tasks that wait for limits in the order of none, or that hold units without being admitted",
        _query("doctor_limited_tasks"), in_transaction(limit_repair.settle_tasks),
    ),
    Check(
        "limits", Severity.ERROR, "limits whose counts differ from a recount",
        _query("doctor_limits"), in_transaction(limit_repair.recount), lambda key: limit_name(*key),
    ),
    Check(
        "counters", Severity.ERROR, "tenants whose counters differ from a recount",
        _wrong_counters, in_transaction(repairs.correct_counters), lambda key: tenant_name(key[0]),
    ),
    Check(
        "change-log", Severity.ERROR,
        "tasks, changed within a day, whose version is not that of their newest change",
        _query("doctor_log_differs"), in_transaction(repairs.settle_log),
    ),
    Check(
        "seals", Severity.ERROR, "ranges of the change log that differ from their seals",
        repairs.find, repairs.acknowledge, lambda key: f"changes {key[1]}",
        acknowledged=repairs.acknowledged, only_by_name=True,
    ),
    Check(
        "partitions", Severity.WARNING, "months with rows in a default partition",
        _months_in_default, in_transaction(repairs.make_partitions), _second,
    ),
    Check(
        "webhooks", Severity.WARNING, "webhooks that could not be delivered for a day",
        _query("doctor_stuck_webhooks"), repairs.deliver_webhooks,
    ),
    Check(
        "schedules", Severity.WARNING, "schedules with an instant that was due minutes ago",
        _query("doctor_overdue_schedules"), repairs.handle_schedules,
        lambda key: schedule_name(*key),
    ),
    Check(
        "jobs", Severity.WARNING, "maintenance jobs that failed, or did not succeed for days",
        _query("doctor_failing_jobs"), repairs.run_jobs, _second,
    ),
    Check(
        "loops", Severity.ERROR, "loops of housekeeping that failed within an hour and were restarted",
        _query("doctor_failed_loops"), run_statements("doctor_forget_loops"), _second,
    ),
    Check(
        "durability", Severity.WARNING, "settings of PostgreSQL that cannot keep acknowledged writes",
        _query("doctor_weak_durability"), repairs.leave_to_the_operator, _second,
    ),
    Check(
        "transactions", Severity.WARNING, "old transactions, for which ended rows of the queue are kept",
        find_old_transactions, repairs.leave_sessions_to_the_operator, _second,
    ),
)  # fmt: skip

NAMES = tuple(check.name for check in CHECKS)


@dataclass(frozen=True, slots=True)
class _Result:
    found: list[Key]
    acknowledged: set[Key]

    @property
    def unacknowledged(self) -> list[Key]:
        return (
            [key for key in self.found if key not in self.acknowledged] if self.acknowledged else self.found
        )


async def run_check(pool: Pool, check: Check, context: RepairContext | None = None) -> Finding:
    """Run a check; repair its findings if given a repair context."""
    first = last = await _run_query(pool, check)
    note = ""
    if context is not None and first.unacknowledged:
        try:
            await repair_pages(check, context, list(dict.fromkeys(first.unacknowledged)))
        except RepairNotPossible as error:
            note = str(error)
        last = await _run_query(pool, check)
    before = set(first.unacknowledged)
    # A violation that appeared meanwhile does not reduce the number of repaired ones.
    unrepaired = sum(key in before for key in last.unacknowledged)
    repaired = len(first.unacknowledged) - min(len(first.unacknowledged), unrepaired)
    examples = tuple(check.display_name(key) for key in (first.unacknowledged or first.found)[:EXAMPLES])
    return Finding(
        check,
        len(first.found),
        len(first.acknowledged),
        repaired,
        len(last.unacknowledged),
        examples,
        note=note,
    )


async def _run_query(pool: Pool, check: Check) -> _Result:
    async with pool.transaction(planned=True) as tx:
        await tx.execute(_TIMEOUT, prepare=False)
        found = await check.find(tx)
        return _Result(found, await check.acknowledged(tx, found))


async def repair_pages(check: Check, context: RepairContext, keys: Sequence[Key]) -> None:
    """Repair page by page; a finding that cannot be repaired is skipped, so that it does not block others."""

    def log_failure(key: Key, error: Exception) -> None:
        log.warning(
            "doctor_repair_failed", check=check.name, resource=check.display_name(key), error=str(error)
        )

    for start in range(0, len(keys), PAGE):
        await isolate(keys[start : start + PAGE], lambda page: check.repair(context, page), log_failure)
