"""Why a task is not running: every gate before its start, the remedy of closed ones, and when they open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from taskyard_scheduler.domain.explain_runners import Candidate, RunnerVerdict, explain_runners
from taskyard_scheduler.domain.placement import EXTERNAL_KIND, Obstacle, PlacementClass


class Gate(IntEnum):
    """Gates, numbered as in the contract."""

    PHASE = 1
    DELAY = 2
    SLOT = 3
    PAUSED = 4
    CONCURRENCY = 5
    QUEUE_DEPTH = 6
    RATE = 7
    QUARANTINE = 8
    RUNNER = 9
    TURN = 10
    TASK_TYPE = 11
    DEPENDENCY = 12
    LIMIT = 14


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The result of one gate."""

    gate: Gate
    passed: bool
    message: str
    remedy: str = ""
    blocker: str = ""
    open_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """An existing task: its phase by name, and what it waits for."""

    name: str
    phase: str
    pending_reason: str = ""
    ready_time: datetime | None = None
    next_attempt_time: datetime | None = None
    holder: str = ""
    lease_expire_time: datetime | None = None
    queued: bool = False
    lane_position: int = 0
    external: bool = False


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """The slot it needs: the task that holds it, its lease expiry, and the number of tasks ahead."""

    slot: str
    head_task: str = ""
    ahead: int = 0
    lease_expire_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class TenantFacts:
    """Its tenant; a limit of 0 means unlimited."""

    tenant: str
    weight: int = 1
    suspended: bool = False
    queue_paused: bool = False
    held: int = 0
    max_concurrent: int = 0
    pending: int = 0
    max_pending: int = 0
    rate: int = 0
    rate_open_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """Its registered task type."""

    name: str
    disabled: bool = False
    queue_paused: bool = False


@dataclass(frozen=True, slots=True)
class DependencyFacts:
    """A prerequisite: its phase by name, empty if it does not exist, and how it has to end, by name."""

    task: str
    phase: str
    when: str = "SUCCEEDED"
    # It is a child that the task waits for, not one of spec.after.
    child: bool = False

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return bool(self.phase) and self.phase not in ENDED

    @property
    def unmet(self) -> bool:
        """Whether it ended otherwise than required, or does not exist."""
        if not self.phase:
            return True
        return (
            self.phase in ENDED
            and self.when != "ENDED"
            and ((self.phase == "SUCCEEDED") != (self.when == "SUCCEEDED"))
        )


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """A limit that it names: the bound that leaves no room for its units, and who waits before it."""

    limit: str
    key: str = ""
    units: int = 1
    missing: bool = False
    open: bool = True
    bound: str = ""
    most: int = 0
    used: int = 0
    open_time: datetime | None = None
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a task, or about a spec (task is None)."""

    now: datetime
    tenant: TenantFacts
    wanted: PlacementClass
    priority: int = 10
    pinned: str = ""
    task: TaskFacts | None = None
    slot: SlotFacts | None = None
    task_type: TypeFacts | None = None
    # Name of the quarantine of its spec, and whether the task was paused for it.
    quarantine: str = ""
    quarantine_holds: bool = False
    # Of a spec; a task has next_attempt_time.
    not_before: datetime | None = None
    # Of a task, the first that it waits for; of a spec, all that it names.
    dependencies: Sequence[DependencyFacts] = ()
    open_dependencies: int = 0
    limits: Sequence[LimitFacts] = ()

    @property
    def external(self) -> bool:
        """Whether its owner executes it instead of a runner."""
        return self.task.external if self.task is not None else self.wanted.kind == EXTERNAL_KIND


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation."""

    runnable: bool
    summary: str
    gates: Sequence[GateVerdict]
    runners: Sequence[RunnerVerdict]
    effective_priority: float
    earliest_time: datetime | None


ENDED = frozenset(("SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED", "EXHAUSTED"))
HELD = frozenset(("SCHEDULED", "RUNNING"))
# Children that the verdict on a waiting task names.
_NAMED_CHILDREN = 3


def explain(facts: Facts, candidates: Sequence[Candidate]) -> Explanation:
    """Every gate that applies, in the order in which they are passed, and every runner."""
    task = facts.task
    gates, runners = list[GateVerdict](), list[RunnerVerdict]()
    if task is not None and (task.phase in HELD or task.phase in ENDED or task.external):
        gates = [_phase(task)]
    elif facts.external:
        gates = [*_admission(facts), _external("report its status once it is created")]
    else:
        runners = explain_runners(facts.wanted, facts.pinned, candidates)
        gates = [*_gates(facts), *_runner_gates(facts, runners)]
    closed = [gate for gate in gates if not gate.passed]
    times = [gate.open_time for gate in closed if gate.open_time is not None]
    return Explanation(
        runnable=not closed,
        summary=_summary(gates, closed),
        gates=gates,
        runners=runners,
        effective_priority=_effective_priority(facts),
        earliest_time=max(times) if times else None,
    )


def _summary(gates: Sequence[GateVerdict], closed: Sequence[GateVerdict]) -> str:
    if closed:
        return closed[0].message
    return gates[0].message if len(gates) == 1 else f"nothing blocks it: {gates[-1].message}"


def _effective_priority(facts: Facts) -> float:
    ready = facts.task.ready_time if facts.task is not None else None
    waited = max(0.0, (facts.now - ready).total_seconds()) if ready is not None else 0.0
    return facts.priority * facts.tenant.weight + 5 * waited / 60


def _gates(facts: Facts) -> Iterator[GateVerdict]:
    if facts.task is not None:
        if facts.quarantine and facts.quarantine_holds and facts.task.phase == "PAUSED":
            yield GateVerdict(Gate.PHASE, True, "it is paused while its spec is quarantined")
        else:
            yield _phase(facts.task)
    yield from _admission(facts)
    if facts.dependencies or (facts.task is not None and facts.task.pending_reason == "BLOCKED"):
        yield _dependency(facts)
    yield _delay(facts)
    if facts.slot is not None:
        yield _slot(facts.slot, facts.task, facts.now)
    if facts.limits:
        yield _limit(facts)
    yield _paused(facts.tenant, facts.task_type)
    if facts.tenant.max_concurrent:
        yield _concurrency(facts.tenant)
    if facts.quarantine or facts.task is not None:
        yield _quarantine(facts.quarantine)


def _admission(facts: Facts) -> Iterator[GateVerdict]:
    """The gates that a spec has to pass at creation."""
    if facts.task is not None:
        return
    if facts.task_type is not None:
        yield _type(facts.task_type)
    if facts.tenant.max_pending:
        yield _queue_depth(facts.tenant)
    if facts.tenant.rate:
        yield _rate(facts.tenant, facts.now)


# ---- the task itself


def _phase(task: TaskFacts) -> GateVerdict:
    if task.phase in ENDED:
        return _ended(task)
    if task.external and task.phase == "RUNNING":
        return GateVerdict(Gate.PHASE, True, "it is external, and its owner works on it")
    if task.external:
        return _external(f"report the status of {task.name}")
    if task.phase in HELD:
        word = "runs on" if task.phase == "RUNNING" else "is assigned to"
        return GateVerdict(Gate.PHASE, True, f"it {word} runner {task.holder}")
    if task.phase == "PAUSED":
        return GateVerdict(Gate.PHASE, False, "it is paused", f"resume {task.name}")
    if task.phase == "REDISTRIBUTING" and not task.queued:
        until = (
            f", until {_format_time(task.lease_expire_time)}" if task.lease_expire_time is not None else ""
        )
        message = f"it is being cancelled; runner {task.holder} may still end it by itself{until}"
        remedy = f"retry {task.name} once it has ended"
        return GateVerdict(Gate.PHASE, False, message, remedy, f"runners/{task.holder}")
    return GateVerdict(Gate.PHASE, True, f"it is {task.phase}")


def _ended(task: TaskFacts) -> GateVerdict:
    message = f"it has ended: {task.phase}"
    if task.phase == "SUCCEEDED":
        remedy = "create it again: a succeeded task cannot be retried"
    else:
        remedy = f"retry {task.name} to run it again"
    return GateVerdict(Gate.PHASE, False, message, remedy)


def _external(remedy: str) -> GateVerdict:
    message = "it is external: its owner works on it and reports its status"
    return GateVerdict(Gate.PHASE, False, message, remedy)


def _dependency(facts: Facts) -> GateVerdict:
    unmet = next((one for one in facts.dependencies if one.unmet), None)
    if unmet is not None and not unmet.phase:
        message, remedy = f"{unmet.task} of spec.after does not exist", "create it first, or remove it"
        return GateVerdict(Gate.DEPENDENCY, False, message, remedy, unmet.task)
    if unmet is not None:
        message = f"{unmet.task} of spec.after ended as {unmet.phase}, and {unmet.when} is required"
        retried = "its tasks that did not succeed" if _is_group(unmet.task) else unmet.task
        remedy = f"retry {retried} with cascade, or remove it from spec.after"
        return GateVerdict(Gate.DEPENDENCY, False, message, remedy, unmet.task)
    blocker = next((one for one in facts.dependencies if one.open), None)
    if blocker is None and not facts.open_dependencies:
        blocked = facts.task is not None and facts.task.pending_reason == "BLOCKED"
        ended = "the tasks of spec.after, or the children that it waited for, have ended"
        if blocked:
            remedy = "wait a moment, or run the doctor's check dependencies"
            return GateVerdict(Gate.DEPENDENCY, False, f"{ended}; it is about to be released", remedy)
        return GateVerdict(Gate.DEPENDENCY, True, f"{ended} as required")
    assert blocker is not None
    if blocker.child:
        return _children(facts, blocker)
    group = _is_group(blocker.task)
    message = f"it waits for {blocker.task}, which is {'not complete' if group else blocker.phase}"
    if facts.open_dependencies > 1:
        message += f", and {facts.open_dependencies - 1} more"
    seen = f"what the live tasks of {blocker.task} wait for" if group else f"what {blocker.task} waits for"
    return GateVerdict(Gate.DEPENDENCY, False, message, f"see {seen}, or cancel it", blocker.task)


def _children(facts: Facts, first: DependencyFacts) -> GateVerdict:
    """The gate of a function that waits for tasks that it has spawned."""
    named = [one for one in facts.dependencies if one.open][:_NAMED_CHILDREN]
    message = "it waits for children that it has spawned: "
    message += ", ".join(f"{one.task} ({one.phase})" for one in named)
    if facts.open_dependencies > len(named):
        message += f", and {facts.open_dependencies - len(named)} more"
    remedy = f"see what {first.task} waits for, or cancel it; the task starts again once they have ended"
    return GateVerdict(Gate.DEPENDENCY, False, message, remedy, first.task)


def _is_group(prerequisite: str) -> bool:
    return "/groups/" in prerequisite


def _limit(facts: Facts) -> GateVerdict:
    missing = next((one for one in facts.limits if one.missing and facts.task is None), None)
    if missing is not None:
        remedy = "create it first, or remove it from spec.limits"
        return GateVerdict(Gate.LIMIT, False, f"{missing.limit} does not exist", remedy, missing.limit)
    closed = next((one for one in facts.limits if not one.open), None)
    if closed is None and facts.task is None and not any(one.ahead for one in facts.limits):
        return GateVerdict(Gate.LIMIT, True, "its limits have room")
    if closed is None:
        ahead = max(facts.limits, key=lambda one: one.ahead)
        message = f"it waits for its turn at {ahead.limit}; {ahead.ahead} tasks of its key are before it"
        return GateVerdict(Gate.LIMIT, False, message, "wait for its turn, or raise the limit", ahead.limit)
    of_key = f" of key {closed.key!r}" if closed.bound.endswith("_per_key") else ""
    message = f"{closed.limit} has no room for {closed.units}: {closed.used} of {closed.most}{of_key} in use"
    message += f" ({closed.bound})"
    if closed.ahead:
        message += f", and {closed.ahead} tasks of its key are before it"
    if closed.open_time is None:
        remedy = f"wait until tasks of it end, or raise {closed.bound} of {closed.limit}"
    else:
        remedy = f"wait until {_format_time(closed.open_time)}, or raise {closed.bound} of {closed.limit}"
    # Behind others it opens later than that.
    open_time = None if closed.ahead else closed.open_time
    return GateVerdict(Gate.LIMIT, False, message, remedy, closed.limit, open_time)


def _delay(facts: Facts) -> GateVerdict:
    due, backoff = _due(facts)
    if due is None:
        return GateVerdict(Gate.DELAY, True, "it has no start delay")
    why = "it is backing off before its next attempt" if backoff else "not_before is in the future"
    message = f"{why}: {_format_time(due)}, in {max(0.0, (due - facts.now).total_seconds()):.0f} s"
    # A started task has a fixed spec; a retry after a cancel starts over without the back-off.
    sooner = "cancel it and retry it to start over at once" if backoff else "change spec.not_before"
    return GateVerdict(Gate.DELAY, False, message, f"wait until {_format_time(due)}, or {sooner}", "", due)


def _due(facts: Facts) -> tuple[datetime | None, bool]:
    """The time it waits for, if any, and whether that is a back-off."""
    task = facts.task
    if task is None:
        due = facts.not_before
        return (due if due is not None and due > facts.now else None), False
    if task.pending_reason not in ("DELAYED", "BACKOFF") or task.phase == "PAUSED":
        return None, False
    return task.next_attempt_time, task.pending_reason == "BACKOFF"


def _slot(slot: SlotFacts, task: TaskFacts | None, now: datetime) -> GateVerdict:
    head = slot.head_task
    if not head or (task is not None and head == task.name):
        return GateVerdict(Gate.SLOT, True, f'slot "{slot.slot}" is free for it')
    message, remedy = f'slot "{slot.slot}" is taken by {head}', f"wait until {head} ends, or cancel it"
    if slot.lease_expire_time is None:
        message, remedy = f"{message}, which has not started", f"see what {head} waits for, or cancel it"
    elif slot.lease_expire_time <= now:
        message, remedy = f"{message}, whose runner is lost", f"wait until {head} has run again, or cancel it"
    if slot.ahead:
        message += f", and {slot.ahead} more {'waits' if slot.ahead == 1 else 'wait'} before it"
    return GateVerdict(Gate.SLOT, False, message, remedy, head)


# ---- its tenant and type


def _paused(tenant: TenantFacts, task_type: TypeFacts | None) -> GateVerdict:
    name = f"tenants/{tenant.tenant}"
    if tenant.suspended:
        message = f"{name} is suspended: nothing of it is claimed"
        return GateVerdict(
            Gate.PAUSED, False, message, f"an administrator ends the suspension of {name}", name
        )
    if tenant.queue_paused:
        message = f"the queue of {name} is paused"
        return GateVerdict(Gate.PAUSED, False, message, f"set queue_paused of {name} to false", name)
    if task_type is not None and task_type.queue_paused:
        message = f"the queue of {task_type.name} is paused"
        remedy = f"set queue_paused of {task_type.name} to false"
        return GateVerdict(Gate.PAUSED, False, message, remedy, task_type.name)
    return GateVerdict(Gate.PAUSED, True, "neither tenant nor type is paused")


def _type(task_type: TypeFacts) -> GateVerdict:
    if task_type.disabled:
        message = f"{task_type.name} is disabled: it takes no new tasks"
        return GateVerdict(
            Gate.TASK_TYPE, False, message, f"set disabled of {task_type.name} to false", task_type.name
        )
    return GateVerdict(Gate.TASK_TYPE, True, f"{task_type.name} takes tasks")


def _concurrency(tenant: TenantFacts) -> GateVerdict:
    message = f"{tenant.held} of at most {tenant.max_concurrent} tasks of the tenant run"
    if tenant.held < tenant.max_concurrent:
        return GateVerdict(Gate.CONCURRENCY, True, message)
    remedy = "wait until one of them ends, or raise quota.max_concurrent_tasks"
    return GateVerdict(Gate.CONCURRENCY, False, message, remedy, f"tenants/{tenant.tenant}")


def _queue_depth(tenant: TenantFacts) -> GateVerdict:
    message = f"{tenant.pending} of at most {tenant.max_pending} tasks of the tenant wait"
    if tenant.pending < tenant.max_pending:
        return GateVerdict(Gate.QUEUE_DEPTH, True, message)
    remedy = "wait until some of them have started, or raise quota.max_queue_depth"
    return GateVerdict(Gate.QUEUE_DEPTH, False, message, remedy, f"tenants/{tenant.tenant}")


def _rate(tenant: TenantFacts, now: datetime) -> GateVerdict:
    due = tenant.rate_open_time
    message = f"the tenant may submit {tenant.rate} task{'' if tenant.rate == 1 else 's'} a second"
    if due is None or due <= now:
        return GateVerdict(Gate.RATE, True, message)
    remedy = f"submit it after {_format_time(due)}, or raise quota.rate_limit_per_sec"
    return GateVerdict(
        Gate.RATE, False, f"{message} and has reached that rate", remedy, f"tenants/{tenant.tenant}", due
    )


def _quarantine(name: str) -> GateVerdict:
    if not name:
        return GateVerdict(Gate.QUARANTINE, True, "its spec is not quarantined")
    message = "its spec is quarantined because it crashed too many runners"
    remedy = f"correct the spec, or have an administrator release {name}"
    return GateVerdict(Gate.QUARANTINE, False, message, remedy, name)


# ---- runners


def _runner_gates(facts: Facts, runners: Sequence[RunnerVerdict]) -> Iterator[GateVerdict]:
    able = [found for found in runners if found.obstacle in (None, Obstacle.CAPACITY)]
    if not able:
        yield _no_runner(runners, facts.now)
        return
    count = f"{len(able)} of {len(runners)}" if len(runners) > 1 else "the only"
    yield GateVerdict(Gate.RUNNER, True, f"{count} {'runner' if len(runners) < 2 else 'runners'} may take it")
    free = [found for found in able if found.obstacle is None]
    ahead = facts.task.lane_position if facts.task is not None else 0
    message = f"{ahead} task{'s are' if ahead != 1 else ' is'} ahead in its lane"
    if not ahead:
        message = "it is first in its lane"
    if free:
        best = free[0].runner_id
        yield GateVerdict(Gate.TURN, True, f"{message}, and runner {best} has room")
        return
    message = f"every runner that may take it is full; {message}"
    remedy = "wait until a task ends there, or add a runner like " + able[0].runner_id
    yield GateVerdict(Gate.TURN, False, message, remedy, f"runners/{able[0].runner_id}")


def _no_runner(runners: Sequence[RunnerVerdict], now: datetime) -> GateVerdict:
    if not runners:
        message = "no runner serves this tenant"
        return GateVerdict(Gate.RUNNER, False, message, "start a runner whose key covers the tenant")
    closest = runners[0]
    message = (
        f"none of {len(runners)} runners may take it"
        if len(runners) > 1
        else "the only runner may not take it"
    )
    message += f"; closest is {closest.runner_id}: {closest.message}"
    waits = [found.open_seconds for found in runners if found.open_seconds is not None]
    opens = now + timedelta(seconds=min(waits)) if waits else None
    return GateVerdict(Gate.RUNNER, False, message, closest.remedy, f"runners/{closest.runner_id}", opens)


def _format_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
