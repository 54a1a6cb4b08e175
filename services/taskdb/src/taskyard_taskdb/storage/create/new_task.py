"""A task as it is handed to the database, and what became of that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import repeat
from typing import NamedTuple

from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.domain.dependency import Prerequisite
from taskyard_taskdb.domain.limit import LimitUse
from taskyard_taskdb.domain.policy import DEFAULT_POLICY, TaskPolicy
from taskyard_taskdb.domain.words import Admission, Kind, PendingReason
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.create.request_ids import Method

_REPLACING = (Admission.REPLACE, Admission.QUEUE_LATEST)


class NewTask(NamedTuple):
    """A valid task with every default filled in; messages are serialised, `labels` is a JSON document."""

    tenant_id: str
    task_id: str
    # None where task_id is its text.
    uid: bytes | None
    kind: int
    class_id: int
    priority: int
    pinned_runner: str
    task_type: str
    slot: str | None
    entity_type: str | None
    entity_id: str | None
    parent_task_id: str | None
    creator_type: int
    creator_id: str
    traceparent: str | None
    spec: bytes
    callback: bytes | None
    annotations: bytes | None
    labels: str | None
    # Whose type it takes; None for a mere classification.
    task_type_tenant: str | None
    group_id: str | None
    policy: TaskPolicy
    packed_policy: bytes | None
    admission: Admission
    class_definition: bytes
    # What makes a repeat of the request recognisable; empty where there is no request_id.
    request_id: str
    body_hash: bytes
    # The tenant has limits, according to the tenant cache of this process.
    limited: bool = False
    method: Method = Method.CREATE_TASK
    after: tuple[Prerequisite, ...] = ()
    limits: tuple[LimitUse, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Tenant and task id."""
        return self.tenant_id, self.task_id

    @property
    def replaces(self) -> bool:
        """Whether it cancels live tasks of its slot: all, or with QUEUE_LATEST all but the head."""
        return self.slot is not None and self.admission in _REPLACING

    @property
    def is_plain(self) -> bool:
        """Whether storing it concerns only itself: no slot, timer, limit, dependency or group."""
        return (
            (self.policy is DEFAULT_POLICY or not self.policy.sets_timer)
            and self.kind != Kind.EXTERNAL
            and self.slot is None
            and not self.limited
            and not self.after
            and self.group_id is None
            and not self.limits
        )

    @property
    def label_map(self) -> Mapping[str, str]:
        """The labels."""
        found: Mapping[str, str] = json.loads(self.labels) if self.labels else {}
        return search_fields.visible(found)

    @property
    def lane(self) -> LaneKey:
        """Where the task queues once it is claimable."""
        return LaneKey(self.tenant_id, self.class_id, self.priority, self.pinned_runner)

    @property
    def name(self) -> str:
        """The resource name."""
        return f"tenants/{self.tenant_id}/tasks/{self.task_id}"


class FirstLease(NamedTuple):
    """The lease that a task got when it was created: its holder, and for how long."""

    runner_id: str
    duration: timedelta


class Created(NamedTuple):
    """The task was stored, in this state; `replaced` are the tasks that are being cancelled for it.

    `admit_time` is when its limits admitted it, in the same transaction and as its second version;
    `leased` is the lease that it got, likewise.
    """

    task: NewTask
    create_time: datetime
    pending_reason: PendingReason
    replaced: tuple[str, ...] = ()
    admit_time: datetime | None = None
    leased: FirstLease | None = None

    @classmethod
    def queued(cls, tasks: Iterable[NewTask], times: Iterable[datetime]) -> Iterator[Created]:
        """The results of tasks that are queued since these times."""
        always = map(repeat, (PendingReason.QUEUED, *cls._field_defaults.values()))
        # Calling the class for each of a thousand takes four times as long.
        return map(tuple.__new__, repeat(cls), zip(tasks, times, *always, strict=False))


@dataclass(frozen=True, slots=True)
class Replayed:
    """Nothing was stored: this request made that task before."""

    tenant_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Nothing was stored: admission DROP_IF_RUNNING found that live task in the slot."""

    tenant_id: str
    task_id: str


CreateResult = Created | Replayed | Dropped


class Refused(Exception):
    """Some tasks of a batch cannot be stored, by their positions; the transaction is rolled back."""

    def __init__(self, errors: Mapping[int, Exception]) -> None:
        super().__init__(f"{len(errors)} tasks refused")
        self.errors = dict(errors)
