"""The defaults of a spec, and the policy of a spec that has them."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any, Final

from google.protobuf import duration_pb2

from taskyard.errors import FieldInvalid, TaskTypeUnknown
from taskyard.v1 import common_pb2, task_pb2
from taskyard_taskdb.domain.policy import DEFAULT_POLICY, TaskPolicy
from taskyard_taskdb.domain.words import Jitter, Kind, Overlap, Restart, RunnerLostPolicy
from taskyard_taskdb.rpc.type_rules import DEFAULT_PRIORITY

_KINDS = {
    "command": Kind.COMMAND,
    "script": Kind.SCRIPT,
    "container": Kind.CONTAINER,
    "wasm": Kind.WASM,
    "function": Kind.FUNCTION,
    "external": Kind.EXTERNAL,
    "embedded": Kind.EMBEDDED,
}
_DURATIONS: Final = ("stop_grace_period", "orphan_timeout", "retention")
_BACKOFF_DURATIONS: Final = ("initial", "max")
_ORPHAN_TIMEOUT = timedelta(hours=1)


def _duration(value: timedelta) -> duration_pb2.Duration:
    made = duration_pb2.Duration()
    made.FromTimedelta(value)
    return made


def _default_spec() -> task_pb2.TaskSpec:
    policy = DEFAULT_POLICY
    spec = task_pb2.TaskSpec(
        priority=DEFAULT_PRIORITY,
        admission=task_pb2.ADMISSION_POLICY_QUEUE,
        overlap=task_pb2.OVERLAP_POLICY_ALLOW,
        on_runner_lost=task_pb2.RUNNER_LOST_POLICY_WAIT,
        stop_grace_period=_duration(policy.stop_grace_period),
        orphan_timeout=_duration(_ORPHAN_TIMEOUT),
        retention=_duration(policy.retention),
    )
    retry = spec.retry
    retry.restart = common_pb2.RestartPolicy.ValueType(policy.restart)
    retry.max_retries = policy.max_retries
    retry.max_runner_losses = policy.max_runner_losses
    retry.backoff.initial.FromTimedelta(policy.backoff_initial)
    retry.backoff.max.FromTimedelta(policy.backoff_max)
    retry.backoff.factor = policy.backoff_factor
    retry.backoff.jitter = common_pb2.JitterPolicy.ValueType(policy.jitter)
    return spec


_DEFAULTS = _default_spec()
_DEFAULTS_WITH_SLOT = task_pb2.TaskSpec()
_DEFAULTS_WITH_SLOT.CopyFrom(_DEFAULTS)
_DEFAULTS_WITH_SLOT.overlap = task_pb2.OVERLAP_POLICY_FORBID


def resolve(given: task_pb2.TaskSpec, path: str) -> tuple[task_pb2.TaskSpec, Kind]:
    """The spec with every default filled in, and the kind of its execution.

    Raises TaskTypeUnknown for a spec with a type but no execution, FieldInvalid for one with neither.
    """
    chosen = given.execution.WhichOneof("kind")
    if chosen is None:
        if given.task_type:
            raise TaskTypeUnknown.named(given.task_type)
        raise FieldInvalid.of(f"{path}.execution", "must be set, or task_type must name a registered type")
    slot = given.slot or (f"{given.entity.type}.{given.entity.id}" if given.HasField("entity") else "")
    spec = task_pb2.TaskSpec()
    spec.CopyFrom(_DEFAULTS_WITH_SLOT if slot else _DEFAULTS)
    _clear_given_durations(spec, given)
    spec.MergeFrom(given)
    spec.slot = slot
    if chosen == "function" and not spec.execution.function.function:
        if not spec.task_type:
            raise FieldInvalid.of(f"{path}.execution.function.function", "must be set, or task_type must be")
        spec.execution.function.function = spec.task_type
    # As `SpecReader.read` does; a type or an edit may bring its own.
    spec.DiscardUnknownFields()
    return spec, _KINDS[chosen]


def _clear_given_durations(spec: task_pb2.TaskSpec, given: task_pb2.TaskSpec) -> None:
    # A merge would mix the seconds of a default with the nanoseconds of a given value.
    for name in _DURATIONS:
        if given.HasField(name):
            spec.ClearField(name)
    if given.HasField("retry") and given.retry.HasField("backoff"):
        for part in _BACKOFF_DURATIONS:
            if given.retry.backoff.HasField(part):
                spec.retry.backoff.ClearField(part)


def policy_of(spec: task_pb2.TaskSpec, kind: Kind) -> TaskPolicy:
    """The policy of a resolved spec: retries, timeouts, overlap and retention."""
    if _is_plain(spec, kind):
        return DEFAULT_POLICY
    retry, backoff = spec.retry, spec.retry.backoff
    return TaskPolicy(
        restart=Restart(retry.restart),
        max_retries=retry.max_retries,
        max_runner_losses=retry.max_runner_losses,
        retry_on_timeout=retry.retry_on_timeout,
        backoff_initial=backoff.initial.ToTimedelta(),
        # An initial delay above the default maximum raises it.
        backoff_max=max(backoff.max.ToTimedelta(), backoff.initial.ToTimedelta()),
        backoff_factor=backoff.factor,
        jitter=Jitter(backoff.jitter),
        attempt_timeout=_optional(spec, "attempt_timeout"),
        silence_timeout=_optional(spec, "silence_timeout"),
        queue_timeout=_optional(spec, "queue_timeout"),
        total_timeout=_optional(spec, "total_timeout"),
        report_timeout=_optional(spec.execution.external, "report_timeout")
        if kind is Kind.EXTERNAL
        else None,
        stop_grace_period=spec.stop_grace_period.ToTimedelta(),
        overlap=Overlap(spec.overlap),
        on_runner_lost=RunnerLostPolicy(spec.on_runner_lost),
        not_before=spec.not_before.ToDatetime(UTC) if spec.HasField("not_before") else None,
        has_callback=spec.HasField("callback"),
        retention=spec.retention.ToTimedelta(),
    )


def _is_plain(spec: task_pb2.TaskSpec, kind: Kind) -> bool:
    return (
        kind is not Kind.EXTERNAL
        and spec.overlap == task_pb2.OVERLAP_POLICY_ALLOW
        and spec.on_runner_lost == task_pb2.RUNNER_LOST_POLICY_WAIT
        and not (spec.HasField("attempt_timeout") or spec.HasField("total_timeout"))
        and not (spec.HasField("queue_timeout") or spec.HasField("silence_timeout"))
        and not (spec.HasField("not_before") or spec.HasField("callback"))
        and spec.retry == _DEFAULTS.retry
        and spec.stop_grace_period == _DEFAULTS.stop_grace_period
        and spec.retention == _DEFAULTS.retention
    )


def _optional(message: Any, field: str) -> timedelta | None:
    if not message.HasField(field):
        return None
    value: timedelta = getattr(message, field).ToTimedelta()
    return value
