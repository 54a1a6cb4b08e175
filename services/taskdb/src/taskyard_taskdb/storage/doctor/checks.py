"""RunDoctor: the invariants, each as a query for what breaks it, and a repair that is safe at any time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from taskyard_taskdb.domain.names import task_name, tenant_name
from taskyard_taskdb.storage.doctor import audit_damage, repairs
from taskyard_taskdb.storage.doctor.repairs import (
    Repair,
    RepairContext,
    RepairNotPossible,
    executing,
    in_transaction,
)
from taskyard_taskdb.storage.housekeeping.partitions import COLUMNS, stray_months
from taskyard_taskdb.storage.poison import isolate
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.slot import repair as slot_repair
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters
from taskyard_taskdb.storage.transition.task_rows import Key

logger = logging.getLogger(__name__)

EXAMPLES = 10
PAGE = 1000
# A check reads whole tables, once: it may take its time, and must not use the plans of the hot path.
_SCAN_SETTINGS = (
    "SET LOCAL statement_timeout = '10min'",
    "SET LOCAL plan_cache_mode = auto",
    "SET LOCAL enable_seqscan = on",
    "SET LOCAL enable_hashjoin = on",
    "SET LOCAL enable_mergejoin = on",
)


class Severity(IntEnum):
    """How bad a finding is (DoctorSeverity)."""

    NONE = 0
    NOTICE = 1
    WARNING = 2
    ERROR = 3


Find = Callable[[Tx], Awaitable[list[Key]]]
FindAcknowledged = Callable[[Tx, Sequence[Key]], Awaitable[set[Key]]]
Name = Callable[[Key], str]


async def _nothing(tx: Tx, found: Sequence[Key]) -> set[Key]:
    return set()


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant: `about` says what was found.

    `acknowledged` are findings that an administrator has acknowledged. A `named` check is repaired only for somebody
    who asks for it by its name.
    """

    name: str
    severity: Severity
    about: str
    find: Find
    repair: Repair
    display_name: Name = lambda key: task_name(*key)
    acknowledged: FindAcknowledged = _nothing
    named: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: in all, what of it was acknowledged and what was repaired, and what is open now."""

    check: Check
    count: int
    acknowledged: int
    repaired: int
    left: int
    examples: tuple[str, ...]
    # Why a repair was not made.
    note: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is; what somebody has acknowledged is no more than worth knowing."""
        if self.count > self.acknowledged:
            return self.check.severity
        return Severity.NOTICE if self.count else Severity.NONE


def _query(name: str) -> Find:
    async def find(tx: Tx) -> list[Key]:
        return [(row[0], row[1]) for row in await tx.fetch(statement(name), prepare=False)]

    return find


async def _off_counters(tx: Tx) -> list[Key]:
    return [(off.tenant_id, "") for off in await counters.compare(tx)]


async def _strays(tx: Tx) -> list[Key]:
    return [
        ("system", f"{table} {month:%Y-%m}") for table in COLUMNS for month in await stray_months(tx, table)
    ]


def _plain(key: Key) -> str:
    return key[1]


# Repairs of the first ones make what the later ones build on.
CHECKS = (
    Check(
        "lease-without-task", Severity.ERROR, "leases of tasks that have ended or do not exist",
        _query("doctor_leases_without_task"), executing("doctor_lock_leases", "doctor_delete_leases"),
    ),
    Check(
        "running-without-lease", Severity.ERROR, "tasks that are said to run without a lease",
        _query("doctor_running_without_lease"), in_transaction(repairs.redistribute),
    ),
    Check(
        "queue-row-without-task", Severity.WARNING, "queue rows whose task cannot be claimed by them",
        _query("doctor_queue_without_task"), executing("doctor_lock_queue", "doctor_dequeue"),
    ),
    Check(
        "task-without-queue-row", Severity.ERROR, "tasks that wait to be claimed and are not in the queue",
        _query("doctor_claimable_without_queue"), in_transaction(repairs.enqueue),
    ),
    Check(
        "lease-without-session", Severity.ERROR, "leases that follow a session that does not exist",
        _query("doctor_leases_without_session"), in_transaction(repairs.expire),
    ),
    Check(
        "lease-overdue", Severity.WARNING, "leases that expired minutes ago and were not ended",
        _query("doctor_leases_overdue"), in_transaction(repairs.expire),
    ),
    Check(
        "holder-without-slot", Severity.ERROR, "tasks that hold a slot which is not theirs",
        _query("doctor_holders_without_slot"), in_transaction(repairs.settle_slots_of),
    ),
    Check(
        "slot-without-head", Severity.WARNING, "slots whose head does not hold them, or that have none",
        _query("doctor_slots_without_head"), in_transaction(slot_repair.repair),
        lambda key: f"{tenant_name(key[0])}/slots/{key[1]}",
    ),
    Check(
        "delay-without-timer", Severity.ERROR, "delayed or retried tasks that nothing will wake",
        _query("doctor_waiting_without_timer"), executing("doctor_lock_tasks", "doctor_set_timers"),
    ),
    Check(
        "timer-without-task", Severity.NOTICE, "timers of tasks that have ended or do not exist",
        _query("doctor_timers_without_task"),
        executing("doctor_lock_tasks", "doctor_lock_timers", "doctor_delete_timers"),
    ),
    Check(
        "counters", Severity.ERROR, "tenants whose counters differ from a recount",
        _off_counters, in_transaction(repairs.correct_counters), lambda key: tenant_name(key[0]),
    ),
    Check(
        "change-log", Severity.ERROR,
        "tasks, changed within a day, whose version is not that of their newest change",
        _query("doctor_log_differs"), in_transaction(repairs.settle_log),
    ),
    Check(
        "seals", Severity.ERROR, "ranges of the change log that are not as they were sealed",
        audit_damage.find, audit_damage.acknowledge, lambda key: f"changes {key[1]}",
        acknowledged=audit_damage.acknowledged, named=True,
    ),
    Check(
        "partitions", Severity.WARNING, "months whose rows lie in a default partition",
        _strays, in_transaction(repairs.make_partitions), _plain,
    ),
    Check(
        "webhooks", Severity.WARNING, "webhooks that could not be delivered for a day",
        _query("doctor_stuck_webhooks"), repairs.deliver_webhooks,
    ),
    Check(
        "jobs", Severity.WARNING, "jobs of housekeeping that failed, or did not run for days",
        _query("doctor_failing_jobs"), repairs.run_jobs, _plain,
    ),
)  # fmt: skip

NAMES = tuple(check.name for check in CHECKS)


@dataclass(frozen=True, slots=True)
class _Result:
    found: list[Key]
    acknowledged: set[Key]

    @property
    def open(self) -> list[Key]:
        return (
            [key for key in self.found if key not in self.acknowledged] if self.acknowledged else self.found
        )


async def run_check(pool: Pool, check: Check, context: RepairContext | None = None) -> Finding:
    """What a check finds; with context, repaired as far as possible."""
    first = last = await _run_query(pool, check)
    note = ""
    if context is not None and first.open:
        try:
            await repair_pages(check, context, list(dict.fromkeys(first.open)))
        except RepairNotPossible as error:
            note = str(error)
        last = await _run_query(pool, check)
    open = set(first.open)
    # What has gone open meanwhile was not repaired, and takes nothing from what was.
    repaired = len(first.open) - min(len(first.open), sum(key in open for key in last.open))
    examples = tuple(check.display_name(key) for key in (first.open or first.found)[:EXAMPLES])
    return Finding(
        check, len(first.found), len(first.acknowledged), repaired, len(last.open), examples, note=note
    )


async def _run_query(pool: Pool, check: Check) -> _Result:
    async with pool.transaction() as tx:
        for setting in _SCAN_SETTINGS:
            await tx.execute(setting, prepare=False)
        found = await check.find(tx)
        return _Result(found, await check.acknowledged(tx, found))


async def repair_pages(check: Check, context: RepairContext, keys: Sequence[Key]) -> None:
    """Repair page by page. What cannot be repaired is passed over, so that it hides nothing behind it."""

    def give_up(key: Key, error: Exception) -> None:
        logger.warning("doctor: %s of %s is not repaired: %s", check.name, check.display_name(key), error)

    for start in range(0, len(keys), PAGE):
        await isolate(keys[start : start + PAGE], lambda page: check.repair(context, page), give_up)
