"""RunDoctor: the invariants, each as a query for what breaks it, and a repair that is safe at any time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from taskyard_taskdb.domain.names import task_name, tenant_name
from taskyard_taskdb.storage import counters, seals
from taskyard_taskdb.storage import doctor_repairs as repairs
from taskyard_taskdb.storage.doctor_repairs import Repair
from taskyard_taskdb.storage.partitions import COLUMNS, stray_months
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.task_rows import Key
from taskyard_taskdb.storage.transitions import Written

EXAMPLES = 10
PAGE = 1000
# Against a check that finds again what its repair has put right.
MAX_PAGES = 1000
# A check reads whole tables, once: it may take its time, and must not use the plans of the hot path.
_AT_LEISURE = (
    "SET LOCAL statement_timeout = '10min'",
    "SET LOCAL plan_cache_mode = auto",
    "SET LOCAL enable_seqscan = on",
    "SET LOCAL enable_hashjoin = on",
    "SET LOCAL enable_mergejoin = on",
)
# The newest ranges of the log are compared with their seals; `audit verify` compares all of them.
SEALS = 1000


class Severity(IntEnum):
    """How bad a finding is (DoctorSeverity)."""

    NONE = 0
    NOTICE = 1
    WARNING = 2
    ERROR = 3


Find = Callable[[Tx], Awaitable[list[Key]]]
Name = Callable[[Key], str]


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant: `about` says what was found. Without a repair only people can help."""

    name: str
    severity: Severity
    about: str
    find: Find
    repair: Repair | None
    shown: Name = lambda key: task_name(*key)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and what of it was repaired."""

    check: Check
    count: int
    repaired: int
    examples: tuple[str, ...]

    @property
    def left(self) -> int:
        """How many are still wrong."""
        return self.count - self.repaired


def _query(name: str) -> Find:
    async def find(tx: Tx) -> list[Key]:
        return [(row[0], row[1]) for row in await tx.fetch(statement(name), prepare=False)]

    return find


async def _off_counters(tx: Tx) -> list[Key]:
    return [(off.tenant_id, "") for off in await counters.compare(tx)]


async def _broken_seals(tx: Tx) -> list[Key]:
    found = await seals.verify_seals(tx, newest=SEALS)
    return [("system", f"{finding.after_id + 1}-{finding.last_id}") for finding in found]


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
        _query("doctor_leases_without_task"), repairs.executing("doctor_delete_leases"),
    ),
    Check(
        "running-without-lease", Severity.ERROR, "tasks that are said to run without a lease",
        _query("doctor_running_without_lease"), repairs.redistribute,
    ),
    Check(
        "queue-row-without-task", Severity.WARNING, "queue rows whose task cannot be claimed by them",
        _query("doctor_queue_without_task"), repairs.executing("doctor_lock_queue", "doctor_dequeue"),
    ),
    Check(
        "task-without-queue-row", Severity.ERROR, "tasks that wait to be claimed and are not in the queue",
        _query("doctor_claimable_without_queue"), repairs.enqueue,
    ),
    Check(
        "lease-without-session", Severity.ERROR, "leases that follow a session that does not exist",
        _query("doctor_leases_without_session"), repairs.expire,
    ),
    Check(
        "lease-overdue", Severity.WARNING, "leases that expired minutes ago and were not ended",
        _query("doctor_leases_overdue"), repairs.expire,
    ),
    Check(
        "holder-without-slot", Severity.ERROR, "tasks that hold a slot which is not theirs",
        _query("doctor_holders_without_slot"), repairs.executing("doctor_lock_tasks", "doctor_take_slots"),
    ),
    Check(
        "slot-without-head", Severity.WARNING, "slots whose head does not hold them, or that have none",
        _query("doctor_slots_without_head"), repairs.free_slots,
        lambda key: f"{tenant_name(key[0])}/slots/{key[1]}",
    ),
    Check(
        "delay-without-timer", Severity.ERROR, "delayed or retried tasks that nothing will wake",
        _query("doctor_waiting_without_timer"), repairs.executing("doctor_lock_tasks", "doctor_set_timers"),
    ),
    Check(
        "timer-without-task", Severity.NOTICE, "timers of tasks that have ended or do not exist",
        _query("doctor_timers_without_task"), repairs.executing("doctor_delete_timers"),
    ),
    Check(
        "counters", Severity.ERROR, "tenants whose counters differ from a recount",
        _off_counters, repairs.correct_counters, lambda key: tenant_name(key[0]),
    ),
    Check(
        "change-log", Severity.ERROR, "tasks whose version differs from what the change log of a day says",
        _query("doctor_log_differs"), repairs.settle_log,
    ),
    Check(
        "seals", Severity.ERROR, "ranges of the change log that are not as they were sealed",
        _broken_seals, None, lambda key: f"changes {key[1]}",
    ),
    Check(
        "partitions", Severity.WARNING, "months whose rows lie in a default partition",
        _strays, repairs.make_partitions, _plain,
    ),
    Check(
        "webhooks", Severity.WARNING, "webhooks that could not be delivered for a day",
        _query("doctor_stuck_webhooks"), repairs.executing("doctor_hurry_webhooks"),
    ),
    Check(
        "jobs", Severity.WARNING, "jobs of housekeeping that failed, or did not run for days",
        _query("doctor_failing_jobs"), None, _plain,
    ),
)  # fmt: skip

NAMES = tuple(check.name for check in CHECKS)


async def examine(
    pool: Pool, check: Check, *, repair: bool = False, told: Callable[[Written], None] = lambda written: None
) -> Finding:
    """What a check finds, repaired as far as asked for and possible."""
    found = await _find(pool, check)
    left = found
    for _ in range(MAX_PAGES if repair and check.repair else 0):
        if not left:
            break
        told(await _repair(pool, check, left[:PAGE]))
        before, left = left, await _find(pool, check)
        if len(left) >= len(before):
            break
    examples = tuple(check.shown(key) for key in found[:EXAMPLES])
    return Finding(check, len(found), len(found) - min(len(left), len(found)), examples)


async def _find(pool: Pool, check: Check) -> list[Key]:
    async with pool.transaction() as tx:
        for setting in _AT_LEISURE:
            await tx.execute(setting, prepare=False)
        return await check.find(tx)


async def _repair(pool: Pool, check: Check, keys: Sequence[Key]) -> Written:
    assert check.repair is not None
    repair = check.repair
    return await pool.run(lambda tx: repair(tx, keys))
