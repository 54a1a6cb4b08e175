"""A task that is yet to be created: the options that every kind takes, and the request they make."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypedDict

from taskyard.convert import Seconds, to_duration, to_payload, to_timestamp
from taskyard.limits import MAX_SCRIPT_BODY_BYTES
from taskyard.v1 import common_pb2, task_pb2
from taskyard.v1.task_service_pb2 import CreateTaskRequest
from taskyard.words import (
    Invalid,
    check_backoff,
    check_identities,
    enum_value,
    parse_admission,
    parse_jitter,
    parse_operator,
    parse_restart,
)


class Named(Protocol):
    """Something with a resource name, such as a Task."""

    @property
    def name(self) -> str:
        """tenants/{tenant}/tasks/{task}"""


@dataclass(frozen=True, slots=True)
class After:
    """A task that has to end before another starts, how it has to end, and the alias of its result.

    The workload reads the result as TASKYARD_INPUTS_DIR/{alias}.json, a function as ctx.inputs[alias].
    "groups/ID" stands for a group of tasks, which has no result; to wait for a group closes it.
    """

    task: str | Named
    alias: str = ""
    when: Literal["succeeded", "ended", "not_succeeded"] = "succeeded"


@dataclass(frozen=True, slots=True)
class LimitUse:
    """What a task takes of a named limit while it is admitted: units of a key's share."""

    limit: str
    key: str = ""
    units: int = 1

    @classmethod
    def parse(cls, text: str) -> LimitUse:
        """Of a text such as api, api:customer-7 or api:customer-7*3; raises ValueError."""
        match = re.fullmatch(r"([^:*]+)(?::([^*]*))?(?:\*(\d+))?", text)
        if match is None:
            raise ValueError(f"{text!r} is not a limit such as api, api:customer-7 or api:customer-7*3")
        return cls(match[1], match[2] or "", int(match[3] or 1))


class CommonOptions(TypedDict, total=False):
    """Options of every task besides its execution; durations are timedeltas or seconds."""

    id: str
    """The caller's own id; the server makes one otherwise."""
    request_id: str
    """Repeating a create with it returns the first task; made by the client otherwise."""
    labels: Mapping[str, str]
    """To find the task by."""
    annotations: Mapping[str, Any]
    """Stored with the task; not searchable."""
    env: Mapping[str, str]
    """Environment of the workload."""
    priority: int
    """0 to 1000, higher first; the default is that of the task type, or 10."""
    slot: str
    """At most one live task of a slot runs at a time."""
    entity: tuple[str, str]
    """Type and id of the business object the task works on; makes the slot if none is given."""
    admission: Literal["queue", "queue_latest", "replace", "drop_if_running"]
    """What to do if the slot is occupied."""
    after: Sequence[str | Named | After]
    """Tasks that have to end first, by id or name, or "groups/ID"; After says how they have to end."""
    limits: Sequence[str | LimitUse]
    """Named limits that have to admit the task: api, api:customer-7, or with units api:customer-7*3."""
    retry: Retry | int
    """The retry policy; an int is the number of retries."""
    timeout: Seconds
    """Longest time of one attempt."""
    total_timeout: Seconds
    """Longest time from creation to end, over all attempts."""
    queue_timeout: Seconds
    """Longest wait for a runner."""
    silence_timeout: Seconds
    """Longest time without a heartbeat of the workload."""
    not_before: datetime
    """Earliest start."""
    stop_grace_period: Seconds
    """Time between the stop signal and the forced stop."""
    retention: Seconds
    """How long the ended task is kept."""
    cpu: float
    """Cores to reserve and enforce."""
    memory_mb: int
    disk_mb: int
    extended: Mapping[str, int]
    """Other resources to reserve, such as {"gpu": 1}."""
    runner_labels: Mapping[str, str]
    """Only runners with these labels."""
    runner_ids: tuple[str, ...]
    """Only these runners."""
    tags: Sequence[str]
    """Only runners that have each of these as the key or the value of a label."""
    selector: Selector
    """Only runners that this selects: match_labels and match_expressions."""
    prefer: Sequence[Preference]
    """Runners that are better than others, with weights."""
    avoid: Constraint
    """No runner that this describes."""
    max_steps: int
    """How many steps the workload may take, 1 to 1000; the workload itself counts them."""
    checkpoint_interval: Seconds
    """How often the workload should save a checkpoint; 0 is when it chooses."""
    orphan_timeout: Seconds
    """How long a run goes on without a scheduler, where overlap is allowed."""
    overlap: Literal["forbid", "allow"]
    """Whether a new run may start while an old one, out of reach, may still be running."""
    on_runner_lost: Literal["wait", "redistribute", "fail", "hold"]
    """What happens to the task when its runner is lost."""
    parent_task: str
    """Full name of the task that created this one."""
    group: str
    """The group that the task joins; its first task makes it."""
    callback: str
    """URL that is called with the ended task."""
    callback_headers: Mapping[str, str]
    """Headers of that call."""


class Options(CommonOptions, total=False):
    """The options of kinds that do not imply an input or a type."""

    task_type: str
    """A registered type with its defaults, or a mere classification."""
    payload: Any
    """Input: bytes as they are, anything else as JSON."""


class Selector(TypedDict, total=False):
    """Runners by their labels; everything that is given must match."""

    match_labels: Mapping[str, str]
    match_expressions: Sequence[Expression]


class Expression(TypedDict, total=False):
    """One requirement of a selector."""

    key: str
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: Sequence[str]


class Constraint(TypedDict, total=False):
    """Runners by id, by labels, or by what they execute."""

    runner_ids: Sequence[str]
    selector: Selector
    labels: Mapping[str, str]
    """Short for a selector with these match_labels."""
    task_types: Sequence[str]
    """Runners that execute a task of one of these types."""
    tags: Sequence[str]
    """Each is the key or the value of a label."""


class Preference(Constraint, total=False):
    """Runners that are preferred."""

    weight: int
    """1 to 100."""


class Retry(TypedDict, total=False):
    """How an unsuccessful task is retried."""

    max_retries: int
    initial: Seconds
    """First delay."""
    max: Seconds
    """Longest delay."""
    factor: float
    jitter: Literal["none", "full", "equal", "decorrelated"]
    restart: Literal["never", "on_failure", "always"]
    retry_on_timeout: bool
    max_runner_losses: int
    """How often the task may lose its runner."""


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to create; `request` is the message that is sent, for fields that the options do not cover."""

    request: CreateTaskRequest

    def validate(self) -> None:
        """Raises taskyard.words.Invalid for what every server refuses: ids, back-off, an oversized script."""
        spec = self.request.task.spec
        check_identities(self.request.task_id, spec.slot)
        check_backoff(spec.retry.backoff)
        if len(spec.execution.script.body) > MAX_SCRIPT_BODY_BYTES:
            raise Invalid(
                f"the script has {len(spec.execution.script.body)} bytes; at most {MAX_SCRIPT_BODY_BYTES} are"
                " allowed"
            )
        if not spec.task_type and spec.execution.WhichOneof("kind") is None:
            raise Invalid("nothing to run: the task has neither an execution nor a type")


def new_task(execution: task_pb2.Execution | None, options: Options) -> NewTask:
    """The task that executes `execution`, or that of its type; raises TypeError for an unknown option."""
    if unknown := options.keys() - Options.__annotations__.keys():
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}")
    request = CreateTaskRequest(
        task_id=options.get("id", ""),
        request_id=options.get("request_id", ""),
        task=task_pb2.Task(
            spec=task_pb2.TaskSpec(
                execution=execution,
                task_type=options.get("task_type", ""),
                slot=options.get("slot", ""),
                priority=options.get("priority"),
            )
        ),
    )
    _set_metadata(request.task.metadata, options)
    _set_spec(request.task.spec, options)
    _set_placement(request.task.spec, options)
    return NewTask(request)


def _set_metadata(metadata: task_pb2.TaskMetadata, options: Options) -> None:
    metadata.labels.update(options.get("labels", {}))
    metadata.parent_task = options.get("parent_task", "")
    metadata.group = options.get("group", "")
    if "annotations" in options:
        metadata.annotations.update(dict(options["annotations"]))


def _set_spec(spec: task_pb2.TaskSpec, options: Options) -> None:
    if options.get("payload") is not None:
        spec.payload.CopyFrom(to_payload(options["payload"]))
    for name, value in options.get("env", {}).items():
        spec.env.add(name=name, value=value)
    if "retry" in options:
        spec.retry.CopyFrom(retry_policy(options["retry"]))
    for prerequisite in options.get("after", ()):
        spec.after.append(_dependency(prerequisite))
    for use in options.get("limits", ()):
        given_use = LimitUse.parse(use) if isinstance(use, str) else use
        spec.limits.add(limit=given_use.limit, key=given_use.key, units=given_use.units)
    if "entity" in options:
        spec.entity.type, spec.entity.id = options["entity"]
    if "not_before" in options:
        spec.not_before.CopyFrom(to_timestamp(options["not_before"]))
    if "callback" in options:
        spec.callback.url = options["callback"]
    if "callback_headers" in options:
        spec.callback.headers.update(options["callback_headers"])
    if "max_steps" in options:
        spec.max_steps = options["max_steps"]
    given: Mapping[str, Any] = options
    for option, field in _DURATIONS.items():
        if option in given:
            getattr(spec, field).CopyFrom(to_duration(given[option]))
    if "admission" in options:
        spec.admission = parse_admission(options["admission"])
    if "overlap" in options:
        spec.overlap = enum_value(task_pb2.OverlapPolicy, options["overlap"])
    if "on_runner_lost" in options:
        spec.on_runner_lost = enum_value(task_pb2.RunnerLostPolicy, options["on_runner_lost"])


def _dependency(prerequisite: str | Named | After) -> task_pb2.Dependency:
    given = prerequisite if isinstance(prerequisite, After) else After(prerequisite)
    conditions = {
        "succeeded": task_pb2.DEPENDENCY_CONDITION_SUCCEEDED,
        "ended": task_pb2.DEPENDENCY_CONDITION_ENDED,
        "not_succeeded": task_pb2.DEPENDENCY_CONDITION_NOT_SUCCEEDED,
    }
    if given.when not in conditions:
        raise ValueError(f"{given.when!r} is not one of {', '.join(conditions)}")
    name = given.task if isinstance(given.task, str) else given.task.name
    if "groups/" in name:
        group = name.removeprefix("groups/")
        return task_pb2.Dependency(group=group, alias=given.alias, when=conditions[given.when])
    return task_pb2.Dependency(task=name, alias=given.alias, when=conditions[given.when])


def _set_placement(spec: task_pb2.TaskSpec, options: Options) -> None:
    if options.keys() & {"cpu", "memory_mb", "disk_mb", "extended"}:
        spec.resources.cpu_millis = round(options.get("cpu", 0) * 1000)
        spec.resources.memory_mb = options.get("memory_mb", 0)
        spec.resources.disk_mb = options.get("disk_mb", 0)
        spec.resources.extended.update(options.get("extended", {}))
    if options.get("runner_labels"):
        spec.placement.required.selector.match_labels.update(options["runner_labels"])
    if options.get("runner_ids"):
        spec.placement.required.runner_ids.extend(options["runner_ids"])
    if options.get("tags"):
        spec.placement.required.tags.extend(options["tags"])
    if options.get("selector"):
        spec.placement.required.selector.MergeFrom(_selector(options["selector"]))
    for one in options.get("prefer", ()):
        spec.placement.preferred.add(weight=one.get("weight", 50), runners=_constraint(one))
    if options.get("avoid"):
        spec.placement.avoid.CopyFrom(_constraint(options["avoid"]))


def _selector(given: Selector) -> common_pb2.RunnerSelector:
    made = common_pb2.RunnerSelector(match_labels=given.get("match_labels", {}))
    for one in given.get("match_expressions", ()):
        operator, values = parse_operator(one["operator"]), one.get("values", ())
        if bool(values) == (operator in _WITHOUT_VALUES):
            needs = "no values" if values else "values"
            raise Invalid(f"{one['operator']} of {one.get('key', '')!r} needs {needs}")
        made.match_expressions.add(key=one["key"], operator=operator, values=values)
    return made


def _constraint(given: Constraint) -> task_pb2.RunnerConstraint:
    made = task_pb2.RunnerConstraint(
        runner_ids=given.get("runner_ids", ()),
        task_types=given.get("task_types", ()),
        tags=given.get("tags", ()),
    )
    if "selector" in given:
        made.selector.CopyFrom(_selector(given["selector"]))
    if given.get("labels"):
        made.selector.match_labels.update(given["labels"])
    return made


_WITHOUT_VALUES = (common_pb2.SELECTOR_OPERATOR_EXISTS, common_pb2.SELECTOR_OPERATOR_DOES_NOT_EXIST)

_DURATIONS = {
    "timeout": "attempt_timeout",
    "total_timeout": "total_timeout",
    "queue_timeout": "queue_timeout",
    "silence_timeout": "silence_timeout",
    "stop_grace_period": "stop_grace_period",
    "retention": "retention",
    "checkpoint_interval": "checkpoint_interval",
    "orphan_timeout": "orphan_timeout",
}


def retry_policy(retry: Retry | int) -> common_pb2.RetryPolicy:
    """The proto of a retry option."""
    if isinstance(retry, int):
        return common_pb2.RetryPolicy(max_retries=retry)
    policy = common_pb2.RetryPolicy(
        max_retries=retry.get("max_retries"),
        retry_on_timeout=retry.get("retry_on_timeout", False),
        max_runner_losses=retry.get("max_runner_losses"),
    )
    if "restart" in retry:
        policy.restart = parse_restart(retry["restart"])
    if retry.keys() & {"initial", "max", "factor", "jitter"}:
        policy.backoff.SetInParent()
        if "jitter" in retry:
            policy.backoff.jitter = parse_jitter(retry["jitter"])
        if "factor" in retry:
            policy.backoff.factor = retry["factor"]
        if "initial" in retry:
            policy.backoff.initial.CopyFrom(to_duration(retry["initial"]))
        if "max" in retry:
            policy.backoff.max.CopyFrom(to_duration(retry["max"]))
        check_backoff(policy.backoff)
    return policy
