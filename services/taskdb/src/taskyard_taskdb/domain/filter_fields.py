"""The fields that filters may name, and how their values are written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, IntEnum, auto

from taskyard.errors import FieldInvalid
from taskyard_taskdb.domain import names
from taskyard_taskdb.domain.group import GroupState
from taskyard_taskdb.domain.quota import Tier
from taskyard_taskdb.domain.words import LIVE, TERMINAL, ActorType, Occupancy, Phase, RunnerState

Value = str | int | datetime | frozenset[int]

EQUAL = ("=", "!=")
ORDERED = ("=", "!=", "<", "<=", ">", ">=")


class FieldType(Enum):
    """What a field holds."""

    TEXT = auto()
    NUMBER = auto()
    TIME = auto()
    PHASE = auto()
    ACTOR_TYPE = auto()
    RUNNER = auto()
    TASK = auto()
    TIER = auto()
    BOOLEAN = auto()
    LABEL = auto()
    # A set of keys or, with values, of labels.
    LABELS = auto()
    RUNNER_STATE = auto()
    OCCUPANCY = auto()
    GROUP_STATE = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A field by its path."""

    path: str
    type: FieldType

    @property
    def operators(self) -> tuple[str, ...]:
        """By what it can be compared."""
        return ORDERED if self.type in (FieldType.NUMBER, FieldType.TIME) else EQUAL

    @property
    def shown(self) -> str:
        """The path as a caller writes it."""
        return self.path.removeprefix("metadata.labels.$")

    @property
    def prefixes(self) -> bool:
        """Whether "*" at the end of a quoted value makes it a prefix."""
        return self.type in (FieldType.TEXT, FieldType.LABEL)

    def read(self, text: str) -> Value:
        """The value of a literal. Raises ValueError, which names the values that are accepted."""
        return _READERS.get(self.type, str)(text)


class FieldTable:
    """The fields of one kind of resource; `labels` is the path of its labels, if it has any."""

    def __init__(self, fields: Mapping[str, FieldType], labels: str = "") -> None:
        self.labels = labels
        self.types = fields
        self._fields = {path: Field(path, kind) for path, kind in fields.items()}
        self.paths = tuple(self._fields)

    def find(self, path: str) -> Field | None:
        """The field of that path, if there is one."""
        return self._fields.get(path)


def _number(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ValueError("write an integer such as 10") from None
    if not -(2**31) <= value < 2**31:
        raise ValueError("it is beyond 32 bits")
    return value


def _time(text: str) -> datetime:
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError('write a time such as "2025-10-01T00:00:00Z"') from None
    if value.tzinfo is None:
        raise ValueError('the offset is missing; add "Z" for UTC')
    return value


def _enum(kind: type[IntEnum], prefix: str, groups: Mapping[str, frozenset[int]]) -> Callable[[str], Value]:
    members: dict[str, frozenset[int]] = {member.name: frozenset({int(member)}) for member in kind}
    members.update(groups)

    def read(text: str) -> Value:
        found = members.get(text.removeprefix(prefix))
        if found is None:
            raise ValueError(f"write one of {', '.join(members)}")
        return found

    return read


def _boolean(text: str) -> int:
    if text not in ("true", "false"):
        raise ValueError("write true or false")
    return text == "true"


def _runner(text: str) -> str:
    return text.removeprefix("runners/")


def _task(text: str) -> str:
    try:
        names.parse_task_name(text)
    except FieldInvalid:
        raise ValueError('write a full name such as "tenants/acme/tasks/t-1"') from None
    return text


_GROUPS = {"LIVE": frozenset(map(int, LIVE)), "TERMINAL": frozenset(map(int, TERMINAL))}
_READERS: Mapping[FieldType, Callable[[str], Value]] = {
    FieldType.NUMBER: _number,
    FieldType.TIME: _time,
    FieldType.PHASE: _enum(Phase, "TASK_PHASE_", _GROUPS),
    FieldType.ACTOR_TYPE: _enum(ActorType, "ACTOR_TYPE_", {}),
    FieldType.RUNNER_STATE: _enum(RunnerState, "RUNNER_STATE_", {}),
    FieldType.OCCUPANCY: _enum(Occupancy, "RUNNER_OCCUPANCY_", {}),
    FieldType.TIER: _enum(Tier, "TENANT_TIER_", {}),
    FieldType.GROUP_STATE: _enum(GroupState, "GROUP_STATE_", {}),
    FieldType.BOOLEAN: _boolean,
    FieldType.RUNNER: _runner,
    FieldType.TASK: _task,
}

TASK_FIELDS = FieldTable(
    {
        "id": FieldType.TEXT,
        "spec.task_type": FieldType.TEXT,
        "spec.slot": FieldType.TEXT,
        "spec.entity.type": FieldType.TEXT,
        "spec.entity.id": FieldType.TEXT,
        "spec.priority": FieldType.NUMBER,
        "status.phase": FieldType.PHASE,
        "status.runner": FieldType.RUNNER,
        "status.attempt": FieldType.NUMBER,
        "status.retry_count": FieldType.NUMBER,
        "status.error.code": FieldType.TEXT,
        "status.start_time": FieldType.TIME,
        "status.end_time": FieldType.TIME,
        "metadata.create_time": FieldType.TIME,
        "metadata.update_time": FieldType.TIME,
        "metadata.creator.id": FieldType.TEXT,
        "metadata.parent_task": FieldType.TASK,
        "metadata.group": FieldType.TEXT,
        "metadata.labels": FieldType.LABELS,
        "payload": FieldType.LABELS,
    },
    labels="metadata.labels",
)

# Lists and batches are answered by the database; what watches compare does not hold dependencies.
TASK_LIST_FIELDS = FieldTable({**TASK_FIELDS.types, "spec.after": FieldType.TASK}, labels=TASK_FIELDS.labels)

RUNNER_FIELDS = FieldTable(
    {
        "id": FieldType.TEXT,
        "state": FieldType.RUNNER_STATE,
        "occupancy": FieldType.OCCUPANCY,
        "registration.backend_type": FieldType.TEXT,
        "registration.version": FieldType.TEXT,
        "registration.task_types": FieldType.LABELS,
        "heartbeat_time": FieldType.TIME,
        "labels": FieldType.LABELS,
    },
    labels="labels",
)

AUDIT_FIELDS = FieldTable(
    {
        "resource": FieldType.TEXT,
        "event_type": FieldType.TEXT,
        "actor.type": FieldType.ACTOR_TYPE,
        "actor.id": FieldType.TEXT,
        "time": FieldType.TIME,
        "request_id": FieldType.TEXT,
    }
)

GROUP_FIELDS = FieldTable(
    {"id": FieldType.TEXT, "state": FieldType.GROUP_STATE, "create_time": FieldType.TIME}
)

TENANT_FIELDS = FieldTable(
    {"tier": FieldType.TIER, "suspended": FieldType.BOOLEAN, "create_time": FieldType.TIME}
)

TASK_TYPE_FIELDS = FieldTable(
    {"id": FieldType.TEXT, "disabled": FieldType.BOOLEAN, "create_time": FieldType.TIME}
)

SCHEDULE_FIELDS = FieldTable(
    {"id": FieldType.TEXT, "paused": FieldType.BOOLEAN, "create_time": FieldType.TIME}
)
