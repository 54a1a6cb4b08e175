"""A model of the tables besides `tasks`: replays effects and checks them against the task's state."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from taskyard_taskdb.domain import transition
from taskyard_taskdb.domain.task import LeaseState, QueueKey, TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import PendingReason, Phase, RunState, TimerKind


@dataclass
class EffectModel:
    """The rows of one task: queue, lease, runs, timers, slot."""

    queue: set[QueueKey] = field(default_factory=set)
    lease: tuple[int, LeaseState] | None = None
    runs: dict[int, RunState] = field(default_factory=dict)
    timers: dict[TimerKind, datetime] = field(default_factory=dict)
    head: bool = False
    candidate: bool = False
    webhooks: int = 0
    deleted: bool = False

    def write(self, transition: Transition) -> None:
        """Writes the effects, then the lease row; each write has to find what it expects."""
        for effect in transition.effects:
            self._write(effect)
        task = transition.task
        if task.lease is not None and (self.lease is None or self.lease[1].lease_id == task.lease.lease_id):
            self.lease = (task.generation, task.lease)

    def _write(self, effect: transition.Effect) -> None:
        match effect:
            case transition.Enqueue(key):
                assert not self.queue, "a task has one queue row"
                self.queue.add(key)
            case transition.Dequeue(key):
                self.queue.remove(key)
            case transition.EndRun(generation=generation, lease_id=lease_id, state=state):
                assert self.lease is not None
                assert (self.lease[0], self.lease[1].lease_id) == (generation, lease_id)
                assert generation not in self.runs, "a run ends once"
                self.lease, self.runs[generation] = None, state
            case transition.TakeSlot():
                assert not self.head
                self.head, self.candidate = True, False
            case transition.WaitForSlot():
                assert not self.head
                self.candidate = True
            case transition.FreeSlot():
                assert self.head
                self.head = False
            case transition.SetTimer(kind, due_time):
                self.timers[kind] = due_time
            case transition.ClearTimer(kind):
                self.timers.pop(kind, None)
            case transition.ClearTimers():
                self.timers.clear()
            case transition.CallWebhook():
                self.webhooks += 1
            case transition.DeleteTask():
                self.deleted = True

    def check(self, task: TaskState) -> None:
        """The rows are those that the state calls for."""
        assert self.queue == ({task.queue_key} if task.claimable else set())
        assert (self.lease[1] if self.lease else None) == task.lease
        assert len(self.runs) + (self.lease is not None) == task.generation, "every claim is a run"
        assert self.head == task.heads_slot
        if task.phase is Phase.PENDING and task.pending_reason is PendingReason.SLOT_BUSY:
            assert self.candidate
        self._check_timers(task)

    def _check_timers(self, task: TaskState) -> None:
        delayed = task.pending_reason in (PendingReason.DELAYED, PendingReason.BACKOFF)
        assert self.timers.get(TimerKind.DUE) == (task.next_attempt_time if delayed else None)
        if task.phase.terminal:
            assert not self.timers
            return
        if task.total_deadline is not None:
            assert self.timers[TimerKind.TOTAL_TIMEOUT] >= task.total_deadline
        timeout = task.policy.queue_timeout
        if task.claimable and timeout is not None and task.ready_time is not None:
            assert TimerKind.QUEUE_TIMEOUT in self.timers
