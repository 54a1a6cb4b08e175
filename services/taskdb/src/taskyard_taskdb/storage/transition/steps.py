"""What one transaction does to each of its tasks: the lifecycle's transitions, put together per task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from taskyard_taskdb.domain.change import Change
from taskyard_taskdb.domain.effect import Effect
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.storage.transition.task_rows import Key, key_of


@dataclass(frozen=True, slots=True)
class Steps:
    """The transitions of one task, in their order; there is at least one."""

    transitions: list[Transition]

    @property
    def before(self) -> TaskState:
        """The task as it was loaded."""
        return self.transitions[0].before

    @property
    def task(self) -> TaskState:
        """The task as it is to be."""
        return self.transitions[-1].task

    @property
    def key(self) -> Key:
        """Tenant and task id."""
        return key_of(self.before)

    def changes(self) -> Iterator[Change]:
        """The changes of all transitions."""
        for transition in self.transitions:
            yield from transition.changes

    def effects(self) -> Iterator[Effect]:
        """The effects of all transitions."""
        for transition in self.transitions:
            yield from transition.effects


def collect(transitions: Iterable[Transition]) -> list[Steps]:
    """Steps per task in key order, without what changes nothing."""
    found: dict[Key, Steps] = {}
    for transition in transitions:
        if not transition.duplicate:
            found.setdefault(key_of(transition.before), Steps([])).transitions.append(transition)
    return [found[key] for key in sorted(found)]
