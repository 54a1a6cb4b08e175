"""Checks a recorded history against the state after it: the invariants I1 to I14, by name.

A pure function: safety always, and liveness because the state is read after healing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.final_state import Change, FinalState, Line, StoredTask
from tests.chaos.function_app import SPAWNED
from tests.chaos.history import Effect, Entry
from tests.chaos.workloads import Plan

PENDING, TERMINAL = 1, 10
SCHEDULE_SECONDS = 2.0
SUCCEEDED, CANCELLED = 10, 13
# Events of the log of changes.
SCHEDULED, STARTED, CHECKPOINT, CANCEL_EVENTS, RETRIED, RETRY, WAITING = 2, 3, 5, (12, 13), 18, 19, 27
# States of runs: by the report of their holder, lost, and given back.
REPORTED_STATES, LOST, RELEASED = (3, 4, 5, 6), 7, 8
# The clock that tasks read ticks a hundred times a second.
TICK = 0.03
THAW_SECONDS = 2.0


class Trouble(NamedTuple):
    """A time in which a runner, or with "*" every runner, may lose leases: `why` is the fault."""

    runner: str
    begin: float
    end: float
    why: str


@dataclass
class Recorded:
    """What was recorded of a run."""

    plans: dict[str, Plan]
    entries: Sequence[Entry]
    effects: Sequence[Effect]
    troubles: Sequence[Trouble] = ()
    unended: Sequence[str] = ()
    failures: Sequence[str] = ()
    faults: Sequence[tuple[str, bool]] = field(default_factory=list)
    # Faults after which a new task did not end in time.
    stalls: Sequence[str] = ()
    # When whole runners were frozen: their processes act until their warden, thawed with them, stops them.
    freezes: Sequence[tuple[float, float]] = ()


def check(recorded: Recorded, final: FinalState) -> list[str]:
    """Every violation, headed by its invariant."""
    return [*_check(recorded, final)]


def _check(recorded: Recorded, final: FinalState) -> Iterator[str]:
    yield from _created(recorded, final)
    yield from _ended(recorded, final)
    for name, plan in recorded.plans.items():
        task = final.tasks.get(name)
        if task is not None:
            effects = [effect for effect in recorded.effects if effect.task == name]
            yield from _terminal_once(name, task)
            yield from _generations(name, task)
            yield from _outcomes(name, task)
            yield from _checkpoints(name, plan, task, effects)
            yield from _cancelled(name, plan, task, effects, recorded)
            yield from _retries(name, plan, task)
            yield from _dependency(name, plan, task, final)
            yield from _spawned(name, plan, task, final)
            yield from _waits(name, task, effects)
            yield from _log(name, plan, task, effects)
    yield from _overlaps(recorded)
    yield from _leaders(recorded, final)
    yield from _instants(final)
    yield from _watched(recorded, final)
    yield from _followed(recorded, final)
    yield from _healthy_runners(recorded, final)
    yield from (f"tables: {breach}" for breach in final.breaches)
    yield from (f"I14 doctor: {finding}" for finding in final.findings)
    yield from (f"I5 a call was refused: {failure}" for failure in recorded.failures)
    yield from (f"I5 no new task ended after {name}" for name in recorded.stalls)
    yield from (f"fault: {name} did not fire" for name, fired in recorded.faults if not fired)


def _created(recorded: Recorded, final: FinalState) -> Iterator[str]:
    answers = defaultdict(set)
    for entry in recorded.entries:
        if entry.what == "created":
            answers[entry.task].add(entry.answer)
    for name, named in answers.items():
        if len(named) > 1:
            yield f"I2 {name}: its request was answered with {sorted(named)}"
        for one in named:
            if one not in final.tasks:
                yield f"I1 {one} was acknowledged and does not exist"
            elif final.tasks[one].nonce != name:
                yield f"I1 {one} is not what was acknowledged: {final.tasks[one].nonce!r}"
    children = defaultdict(list)
    for name, task in final.tasks.items():
        if task.nonce and task.nonce != name:
            children[task.nonce].append(name)
    for nonce, names in children.items():
        yield f"I2 the request of {nonce} made {names}"


def _ended(recorded: Recorded, final: FinalState) -> Iterator[str]:
    for name in recorded.unended:
        phase = final.tasks[name].phase if name in final.tasks else "missing"
        yield f"I5 {name} did not end after healing, it is {phase}"
    for name, task in final.tasks.items():
        if task.phase < TERMINAL and name not in recorded.unended:
            yield f"I5 {name} is {task.phase} after healing"
    for entry in recorded.entries:
        if entry.what == "ended" and final.tasks[entry.task].phase != entry.phase:
            yield f"I3 {entry.task} ended as {entry.phase} and is {final.tasks[entry.task].phase}"
    for name, plan in recorded.plans.items():
        wanted = (SUCCEEDED, CANCELLED) if plan.action == "cancel" else (SUCCEEDED,)
        stored = final.tasks.get(name)
        if stored is not None and stored.phase >= TERMINAL and stored.phase not in wanted:
            yield f"I3 {name} ended as {stored.phase}, expected one of {wanted}"


def _dependency(name: str, plan: Plan, task: StoredTask, final: FinalState) -> Iterator[str]:
    claims = [change.id for change in task.changes if change.event == SCHEDULED]
    if claims and plan.after in final.tasks:
        ends = [change.id for change in final.tasks[plan.after].changes if change.phase >= TERMINAL]
        if not ends or claims[0] < ends[0]:
            yield f"dependency: {name} was claimed before {plan.after} had ended"


def _spawned(name: str, plan: Plan, task: StoredTask, final: FinalState) -> Iterator[str]:
    """Each child exists once, and has ended before its parent goes on after a wait, and before its end."""
    if plan.kind != "gather":
        return
    children = {id: child for id, child in final.tasks.items() if child.parent == name}
    if sorted(id.removeprefix(f"{name}.").partition(".")[0] for id in children) != sorted(SPAWNED):
        yield f"spawn: {name} has the children {sorted(children)}"
    waited = min((change.id for change in task.changes if change.event == WAITING), default=None)
    steps = [
        change.id
        for change in task.changes
        if change.phase >= TERMINAL or (waited and change.event == SCHEDULED and change.id > waited)
    ]
    for id, child in children.items():
        end = _end(child)
        if steps and (end is None or end.id > min(steps)):
            yield f"spawn: {name} went on before its child {id} had ended"


def _waits(name: str, task: StoredTask, effects: list[Effect]) -> Iterator[str]:
    """A run that ends to wait holds nothing and does nothing more."""
    for wait in task.changes:
        if wait.event != WAITING:
            continue
        run = task.runs.get(wait.generation)
        if wait.phase != PENDING or run is None or run.state != RELEASED:
            yield f"wait: {name} holds its place while it waits"
        if any(effect.generation == wait.generation and effect.t > wait.t + TICK for effect in effects):
            yield f"wait: {name} acted after it had ended to wait"


def _instants(final: FinalState) -> Iterator[str]:
    """Every due instant of a schedule leaves exactly one event."""
    for schedule, seconds in final.instants.items():
        due = range(min(seconds), max(seconds) + 1, int(SCHEDULE_SECONDS))
        if sorted(seconds) != list(due):
            wrong = [second for second in due if seconds.count(second) != 1]
            yield f"schedule: {schedule} has not exactly one event for {wrong}"


def _terminal_once(name: str, task: StoredTask) -> Iterator[str]:
    ended = False
    for change in task.changes:
        if ended and change.event != RETRIED and change.phase < TERMINAL:
            yield f"I3 {name} left its end with event {change.event}"
        if ended and change.phase >= TERMINAL and change.event in range(8, 13):
            yield f"I3 {name} ended twice"
        ended = change.phase >= TERMINAL


def _generations(name: str, task: StoredTask) -> Iterator[str]:
    current = 0
    for change in task.changes:
        if change.event == SCHEDULED and change.generation != current + 1:
            yield f"I4 {name}: generation {change.generation} was claimed after {current}"
        if change.event == STARTED and change.generation != current:
            yield f"I4 {name}: a start of generation {change.generation} was accepted, {current} is current"
        current = max(current, change.generation)


def _outcomes(name: str, task: StoredTask) -> Iterator[str]:
    """At most one run per task succeeds; the rest failed, were lost or given back."""
    won = [run.generation for run in task.runs.values() if run.state == 3]
    if len(won) > 1:
        yield f"I6 {name}: the success of generations {won} was accepted"


def _checkpoints(name: str, plan: Plan, task: StoredTask, effects: list[Effect]) -> Iterator[str]:
    if not plan.keeps:
        return
    stored = 0
    # A run whose process could not be started counts as an attempt and began nowhere.
    began_at = {effect.generation for effect in effects if effect.what == "start"}
    for change in task.changes:
        run = task.runs.get(change.generation)
        if change.event == CHECKPOINT:
            stored = max(stored, change.checkpoint)
        if change.event != SCHEDULED or run is None or change.generation not in began_at:
            continue
        if run.started and run.start_checkpoint < stored:
            yield f"I8 {name}: generation {change.generation} began at {run.start_checkpoint}, not {stored}"
    kept = 0
    for generation in sorted({effect.generation for effect in effects}):
        own = [effect for effect in effects if effect.generation == generation]
        began = next((effect.n for effect in own if effect.what == "start"), None)
        if began is not None and began < kept:
            yield f"I8 {name}: generation {generation} began at {began}, {kept} was handed over before"
        run = task.runs.get(generation)
        if run is not None and run.state in REPORTED_STATES:
            kept = max([kept, *(effect.n for effect in own if effect.what == "kept")])


def _cancelled(
    name: str, plan: Plan, task: StoredTask, effects: list[Effect], recorded: Recorded
) -> Iterator[str]:
    asked = next((change for change in task.changes if change.event in CANCEL_EVENTS), None)
    if asked is None:
        if any(entry.what == "cancelled" and entry.task == name for entry in recorded.entries):
            yield f"I9 {name}: the acknowledged cancel is not in its history"
        return
    attempt = asked.attempt
    for change in task.changes:
        if change.id <= asked.id:
            continue
        if change.event in (SCHEDULED, RETRY):
            yield f"I9 {name}: event {change.event} after its cancel"
        if change.event == STARTED and change.attempt > attempt:
            yield f"I9 {name}: a start after its cancel was charged"
    end = _end(task)
    if plan.exclusive and end is not None:
        before = [effect.t for effect in effects if effect.t <= end.t + TICK]
        late = [effect.t for effect in effects if effect.t > end.t + TICK]
        for t in late:
            if not _thawed(t, before, recorded.freezes):
                yield f"I9 {name} acted {t - end.t:.2f} s after it had ended"
                return


def _end(task: StoredTask) -> Change | None:
    return next((change for change in task.changes if change.phase >= TERMINAL), None)


def _retries(name: str, plan: Plan, task: StoredTask) -> Iterator[str]:
    most = max((change.retry_count for change in task.changes), default=0)
    if most > plan.retries:
        yield f"I10 {name}: {most} retries were charged, {plan.retries} are allowed"


def _overlaps(recorded: Recorded) -> Iterator[str]:
    runs: dict[str, dict[tuple[str, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for effect in recorded.effects:
        plan = recorded.plans.get(effect.task)
        if plan is not None and plan.exclusive:
            times = runs[plan.slot or effect.task][(effect.task, effect.generation)]
            if not _thawed(effect.t, times, recorded.freezes):
                times.append(effect.t)
    for group, by_run in runs.items():
        ordered = sorted((min(times), max(times), run) for run, times in by_run.items())
        for (_, end, first), (begin, _, second) in pairwise(ordered):
            if begin < end - TICK:
                yield f"I6 {group}: {first} and {second} overlap by {end - begin:.2f} s"


def _thawed(t: float, before: list[float], freezes: Sequence[tuple[float, float]]) -> bool:
    """Whether a run acts right after a freeze that it was in: nothing can stop it earlier."""
    return any(
        end - 0.5 < t < end + THAW_SECONDS and before and before[-1] < begin + 0.5 for begin, end in freezes
    )


def _leaders(recorded: Recorded, final: FinalState) -> Iterator[str]:
    """Only the leader makes tasks claimable whose time has come; slots, dependents, parents by everybody."""
    for write in final.leader_writes:
        plan = recorded.plans.get(write.task)
        released = plan is not None and (plan.slot or plan.after or plan.kind == "gather")
        if plan is not None and not released and write.writer != write.leader:
            yield f"I7 {write.task}: {write.writer} wrote as the leader, which is {write.leader}"


def _watched(recorded: Recorded, final: FinalState) -> Iterator[str]:
    seen: dict[str, list[int]] = defaultdict(list)
    for entry in recorded.entries:
        if entry.what == "watch":
            seen[entry.task].append(entry.version)
    for name, task in final.tasks.items():
        if name not in recorded.plans and name not in seen:
            continue
        versions = [change.version for change in task.changes]
        if seen[name] != versions:
            yield f"I11 {name}: the watch delivered {seen[name]}, committed are {versions}"


def _log(name: str, plan: Plan, task: StoredTask, effects: list[Effect]) -> Iterator[str]:
    if plan.kind in ("parent", "gather"):
        return
    by_run: dict[int, list[Line]] = defaultdict(list)
    for line in task.lines:
        by_run[line.generation].append(line)
    for generation, lines in by_run.items():
        sequences = [line.sequence for line in lines]
        if sequences != list(range(1, len(lines) + 1)):
            yield f"I12 {name}: the log of generation {generation} has the offsets {sequences}"
    for generation in {effect.generation for effect in effects}:
        own = [effect for effect in effects if effect.generation == generation]
        began = next((effect.n for effect in own if effect.what == "start"), 0)
        last = max([began, *(effect.n for effect in own if effect.what == "step")])
        lines = by_run.get(generation, [])
        numbers = [int(line.message[5:]) for line in lines if line.message.startswith("line ")]
        if numbers != list(range(began + 1, began + 1 + len(numbers))):
            yield f"I12 {name}: generation {generation} logged the lines {numbers}, from {began}"
        elif len(numbers) < last - began and not any(line.notice for line in lines):
            yield f"I12 {name}: generation {generation} wrote {last} lines, logged are {numbers}, no notice"


def _followed(recorded: Recorded, final: FinalState) -> Iterator[str]:
    """A log that was followed to its end delivered each line once and in order."""
    for entry in recorded.entries:
        if entry.what != "followed":
            continue
        followed = [tuple(line) for line in entry.lines]
        if len(set(followed)) != len(followed) or followed != sorted(followed):
            yield f"I12 {entry.task}: a followed log has repeats or is out of order: {followed}"
        task = final.tasks[entry.task]
        won = [run.generation for run in task.runs.values() if run.state == 3]
        stored = {(line.generation, line.sequence) for line in task.lines if line.generation in won}
        if stored - set(followed):
            yield f"I12 {entry.task}: a followed log lacks {sorted(stored - set(followed))}"


def _healthy_runners(recorded: Recorded, final: FinalState) -> Iterator[str]:
    for name, task in final.tasks.items():
        for run in task.runs.values():
            if run.state != LOST:
                continue
            hurt = [
                trouble
                for trouble in recorded.troubles
                if trouble.runner in ("*", run.runner) and trouble.begin <= run.t <= trouble.end
            ]
            if not hurt:
                yield f"I13 {name}: generation {run.generation} was lost by {run.runner}, which was healthy"
