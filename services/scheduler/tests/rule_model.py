"""An independent model of the hard placement rules of the contract, and of runners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from taskyard.v1 import common_pb2, lease_pb2, runner_pb2, task_pb2
from taskyard.v1 import runner_link_service_pb2 as link

TENANTS = ("t", "u")
CAPACITY = 3


def selector(**fields: Any) -> task_pb2.RunnerConstraint:
    return task_pb2.RunnerConstraint(selector=common_pb2.RunnerSelector(**fields))


def expression(key: str, operator: int, *values: str) -> task_pb2.RunnerConstraint:
    made = task_pb2.RunnerConstraint()
    made.selector.match_expressions.add(key=key, operator=operator, values=values)
    return made


@dataclass(frozen=True)
class TaskClass:
    """The requirements of a class of tasks."""

    task_type: str = ""
    placement: task_pb2.Placement = field(default_factory=task_pb2.Placement)
    kind: str = "command"
    function: str = ""
    memory_mb: int = 0
    pinned: str = ""
    pattern: str = ""

    def spec(self) -> task_pb2.TaskSpec:
        made = task_pb2.TaskSpec(task_type=self.task_type, placement=self.placement)
        getattr(made.execution, self.kind).SetInParent()
        if self.kind == "function":
            made.execution.function.function = self.function
        made.resources.memory_mb = self.memory_mb
        return made


def placed(
    required: task_pb2.RunnerConstraint | None = None, avoid: task_pb2.RunnerConstraint | None = None
) -> task_pb2.Placement:
    return task_pb2.Placement(required=required, avoid=avoid)


CLASSES: Sequence[TaskClass] = [
    TaskClass(),
    TaskClass("heavy"),
    TaskClass(placement=placed(required=selector(match_labels={"zone": "eu"}))),
    TaskClass(placement=placed(required=expression("gpu", 3))),
    TaskClass(placement=placed(required=expression("zone", 2, "us"))),
    TaskClass(placement=placed(required=expression("spot", 4))),
    TaskClass(placement=placed(avoid=selector(match_labels={"spot": "yes"}))),
    TaskClass(placement=placed(required=task_pb2.RunnerConstraint(runner_ids=["r1", "r3"]))),
    TaskClass("light", placed(avoid=task_pb2.RunnerConstraint(task_types=["heavy", "light"]))),
    TaskClass(placement=placed(required=task_pb2.RunnerConstraint(task_types=["heavy"]))),
    TaskClass("small", memory_mb=256),
    TaskClass("large", memory_mb=1024),
    TaskClass("mail.send", kind="function", function="send"),
    TaskClass("mail.read", kind="script", memory_mb=512),
    TaskClass(pinned="r2"),
    TaskClass("heavy", pattern="^r[12]$"),
]


@dataclass
class Host:
    """A runner of the model."""

    runner_id: str
    own: dict[str, str] = field(default_factory=dict)
    admin: dict[str, str] = field(default_factory=dict)
    drained: bool = False
    capacity: int = CAPACITY
    kinds: tuple[str, ...] = ("command", "script", "function")
    types: tuple[str, ...] = ("*",)
    functions: tuple[str, ...] = ("send",)
    # None = it does not account memory.
    memory_mb: int | None = 1024
    scope: tuple[str, ...] = ()
    epoch: int = 0
    instance: int = 1
    # The tasks it holds by name, and those of them that were sent in this session.
    held: dict[str, TaskClass] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    # The time until which it is not offered tasks similar to those it refused.
    refused: dict[tuple[str, str, str, str], float] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, str]:
        return {**self.own, **self.admin}

    @property
    def used_mb(self) -> int:
        return sum(task_class.memory_mb for task_class in self.held.values())

    def message(self) -> runner_pb2.Runner:
        made = runner_pb2.Runner(
            name=f"runners/{self.runner_id}", admin_labels=self.admin, tenants=self.scope
        )
        if self.drained:
            made.drain.mode = runner_pb2.DRAIN_MODE_FINISH
        return made

    def registration(self) -> runner_pb2.RunnerRegistration:
        made = runner_pb2.RunnerRegistration(
            labels=self.own,
            task_types=self.types,
            functions=self.functions,
            execution_kinds=[kind_number(kind) for kind in self.kinds],
            capacity=self.capacity,
        )
        if self.memory_mb is not None:
            made.resources.memory_mb = self.memory_mb
        return made

    def refs(self) -> list[link.HeldTask]:
        return [link.HeldTask(lease=lease_of(task), state=link.HELD_STATE_RUNNING) for task in self.held]

    def free(self) -> link.Capacity:
        made = link.Capacity(tasks=max(0, self.capacity - len(self.held)))
        if self.memory_mb is not None:
            made.resources.memory_mb = max(0, self.memory_mb - self.used_mb)
            made.resources.SetInParent()
        return made


def kind_number(kind: str) -> runner_pb2.ExecutionKind.ValueType:
    return runner_pb2.ExecutionKind.Value(f"EXECUTION_KIND_{kind.upper()}")


def lease_of(task: str) -> lease_pb2.LeaseRef:
    return lease_pb2.LeaseRef(task=task, generation=1, lease_id=1)


def tenant_of(task: str) -> str:
    return task.split("/")[1]


def allowed(host: Host, task_class: TaskClass, tenant: str, now: float) -> bool:
    if task_class.kind not in host.kinds or not any(
        covers(pattern, task_class.task_type) for pattern in host.types
    ):
        return False
    if task_class.kind == "function" and task_class.function not in host.functions:
        return False
    if host.scope and tenant not in host.scope:
        return False
    if (task_class.pinned or host.runner_id) != host.runner_id or (
        task_class.pattern and host.runner_id == "r3"
    ):
        return False
    if host.refused.get((tenant, task_class.kind, task_class.task_type, task_class.function), 0.0) > now:
        return False
    return welcomes(host, task_class.placement)


def covers(pattern: str, task_type: str) -> bool:
    return task_type.startswith(pattern[:-1]) if pattern.endswith("*") else task_type == pattern


def welcomes(host: Host, placement: task_pb2.Placement) -> bool:
    required, avoid = placement.required, placement.avoid
    types = {task_class.task_type for task_class in host.held.values()}
    if required.runner_ids and host.runner_id not in required.runner_ids:
        return False
    if required.task_types and not types & set(required.task_types):
        return False
    if not selects(required.selector, host.labels):
        return False
    named = host.runner_id in avoid.runner_ids
    checks_running_types = types & set(avoid.task_types)
    return not (
        named or checks_running_types or (avoid.HasField("selector") and selects(avoid.selector, host.labels))
    )


def selects(wanted: common_pb2.RunnerSelector, labels: dict[str, str]) -> bool:
    for key, value in wanted.match_labels.items():
        if labels.get(key) != value:
            return False
    for rule in wanted.match_expressions:
        there, among = rule.key in labels, labels.get(rule.key) in list(rule.values)
        if not (None, there and among, not (there and among), there, not there)[rule.operator]:
            return False
    return True


def task_class_of(task: str) -> TaskClass:
    """The class is in the task's name."""
    return CLASSES[class_of(task)]


def class_of(task: str) -> int:
    return int(task.rpartition("/")[2].partition("-")[0])
