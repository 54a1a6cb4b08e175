"""A task that is yet to be created: the options that every kind takes, and the request they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypedDict

from taskyard.convert import Seconds, to_duration, to_payload, to_timestamp
from taskyard.v1 import common_pb2, task_pb2
from taskyard.v1.task_service_pb2 import CreateTaskRequest


class Named(Protocol):
    """Something with a resource name, such as a Task."""

    @property
    def name(self) -> str:
        """tenants/{tenant}/tasks/{task}"""


@dataclass(frozen=True, slots=True)
class After:
    """A task that has to end before another starts, how it has to end, and the alias of its result.

    The workload reads the result as TASKYARD_INPUTS_DIR/{alias}.json, a function as ctx.inputs[alias].
    """

    task: str | Named
    alias: str = ""
    when: Literal["succeeded", "ended", "not_succeeded"] = "succeeded"


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
    admission: Literal["queue", "replace", "drop_if_running"]
    """What to do if the slot is occupied."""
    after: Sequence[str | Named | After]
    """Tasks that have to end first, by id or name; After says how they have to end."""
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
    runner_labels: Mapping[str, str]
    """Only runners with these labels."""
    runner_ids: tuple[str, ...]
    """Only these runners."""
    overlap: Literal["forbid", "allow"]
    """Whether a new run may start while an old one, out of reach, may still be running."""
    on_runner_lost: Literal["wait", "redistribute", "fail", "hold"]
    """What happens to the task when its runner is lost."""
    parent_task: str
    """Full name of the task that created this one."""
    callback: str
    """URL that is called with the ended task."""


class Options(CommonOptions, total=False):
    """The options of kinds that do not imply an input or a type."""

    task_type: str
    """A registered type with its defaults, or a mere classification."""
    payload: Any
    """Input: bytes as they are, anything else as JSON."""


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


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to create; `request` is the message that is sent, for fields that the options do not cover."""

    request: CreateTaskRequest


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
    if "entity" in options:
        spec.entity.type, spec.entity.id = options["entity"]
    if "not_before" in options:
        spec.not_before.CopyFrom(to_timestamp(options["not_before"]))
    if "callback" in options:
        spec.callback.url = options["callback"]
    given: Mapping[str, Any] = options
    for option, field in _DURATIONS.items():
        if option in given:
            getattr(spec, field).CopyFrom(to_duration(given[option]))
    spec.admission = _number(task_pb2.AdmissionPolicy, options.get("admission"))
    spec.overlap = _number(task_pb2.OverlapPolicy, options.get("overlap"))
    spec.on_runner_lost = _number(task_pb2.RunnerLostPolicy, options.get("on_runner_lost"))


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
    return task_pb2.Dependency(task=name, alias=given.alias, when=conditions[given.when])


def _set_placement(spec: task_pb2.TaskSpec, options: Options) -> None:
    if options.keys() & {"cpu", "memory_mb", "disk_mb"}:
        spec.resources.cpu_millis = round(options.get("cpu", 0) * 1000)
        spec.resources.memory_mb = options.get("memory_mb", 0)
        spec.resources.disk_mb = options.get("disk_mb", 0)
    if options.get("runner_labels"):
        spec.placement.required.selector.match_labels.update(options["runner_labels"])
    if options.get("runner_ids"):
        spec.placement.required.runner_ids.extend(options["runner_ids"])


_DURATIONS = {
    "timeout": "attempt_timeout",
    "total_timeout": "total_timeout",
    "queue_timeout": "queue_timeout",
    "silence_timeout": "silence_timeout",
    "stop_grace_period": "stop_grace_period",
    "retention": "retention",
}


def retry_policy(retry: Retry | int) -> common_pb2.RetryPolicy:
    """The proto of a retry option."""
    if isinstance(retry, int):
        return common_pb2.RetryPolicy(max_retries=retry)
    policy = common_pb2.RetryPolicy(
        max_retries=retry.get("max_retries"),
        restart=_number(common_pb2.RestartPolicy, retry.get("restart")),
        retry_on_timeout=retry.get("retry_on_timeout", False),
    )
    if retry.keys() & {"initial", "max", "factor", "jitter"}:
        policy.backoff.jitter = _number(common_pb2.JitterPolicy, retry.get("jitter"))
        if "factor" in retry:
            policy.backoff.factor = retry["factor"]
        if "initial" in retry:
            policy.backoff.initial.CopyFrom(to_duration(retry["initial"]))
        if "max" in retry:
            policy.backoff.max.CopyFrom(to_duration(retry["max"]))
    return policy


def _number(enum: Any, word: str | None) -> Any:
    """The enum value of a word, such as FORBID for "forbid"; the unspecified one for None."""
    if word is None:
        return 0
    for name, number in enum.items():
        if number and name.endswith(f"_POLICY_{word.upper()}"):
            return number
    words = ", ".join(name.partition("_POLICY_")[2].lower() for name, number in enum.items() if number)
    raise ValueError(f"{word!r} is not one of {words}")
