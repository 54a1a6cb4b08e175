"""Groups of tasks: names of groups of children, and of groups among the prerequisites of a task."""

from enum import IntEnum

from taskyard_taskdb.domain.names import group_name, task_name
from taskyard_taskdb.domain.words import Phase

_CHILDREN = ".children"
# No id of a task has a slash: a prerequisite with this prefix is a group.
_PREFIX = "groups/"


class GroupState(IntEnum):
    """Whether tasks may join a group, and whether all have ended (GroupState)."""

    OPEN = 1
    CLOSED = 2
    COMPLETE = 3


def children_group(task_id: str) -> str:
    """The id of the group of the tasks that a task creates."""
    return task_id + _CHILDREN


def as_prerequisite(group_id: str) -> str:
    """A group as the id of a prerequisite."""
    return _PREFIX + group_id


def group_of(prerequisite_id: str) -> str | None:
    """The group that a prerequisite is; None for a task."""
    return prerequisite_id[len(_PREFIX) :] if prerequisite_id.startswith(_PREFIX) else None


def prerequisite_name(tenant_id: str, prerequisite_id: str) -> str:
    """The resource name of a prerequisite: of a task or of a group."""
    group_id = group_of(prerequisite_id)
    return task_name(tenant_id, prerequisite_id) if group_id is None else group_name(tenant_id, group_id)


def outcome(not_succeeded: int) -> Phase:
    """How a complete group has ended, in the words of a task."""
    return Phase.FAILED if not_succeeded else Phase.SUCCEEDED
