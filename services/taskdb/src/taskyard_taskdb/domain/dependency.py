"""Dependencies between tasks: conditions on prerequisites, and cycles among new tasks."""

from collections.abc import Hashable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

from taskyard_taskdb.domain.words import Phase

MAX_DEPENDENCIES = 1000


class Condition(IntEnum):
    """How a prerequisite has to end (DependencyCondition)."""

    SUCCEEDED = 1
    ENDED = 2
    NOT_SUCCEEDED = 3


class Prerequisite(NamedTuple):
    """An entry of spec.after; it is a task of the same tenant."""

    task_id: str
    condition: Condition = Condition.SUCCEEDED
    alias: str | None = None


def is_met(condition: Condition, phase: Phase) -> bool:
    """Whether a terminal phase fulfils a condition."""
    if condition is Condition.ENDED:
        return True
    return (phase is Phase.SUCCEEDED) == (condition is Condition.SUCCEEDED)


def failure(name: str, phase: Phase) -> str:
    """Why a task that named this prerequisite can no longer start."""
    return f"{name}, which is in spec.after, ended as {phase.name}; the task requires another outcome of it"


Node = TypeVar("Node", bound=Hashable)


def find_cycle(edges: Mapping[Node, Sequence[Node]]) -> list[Node]:
    """A cycle, its first node also last; empty if there is none. Nodes without entry have no edges."""
    done: set[Node] = set()
    for start in edges:
        if start in done:
            continue
        path: list[Node] = [start]
        place = {start: 0}
        rest = [iter(edges[start])]
        while rest:
            following = next(rest[-1], None)
            if following is None:
                rest.pop()
                left = path.pop()
                del place[left]
                done.add(left)
            elif following in place:
                return [*path[place[following] :], following]
            elif following not in done and following in edges:
                place[following] = len(path)
                path.append(following)
                rest.append(iter(edges[following]))
    return []
