"""A CreateTaskRequest becomes a NewTask: validated, with defaults, slot, policy and placement class.

Most tasks differ from earlier ones only in payload, arguments and ids. The validation of the rest and the
values derived from it are cached as a template.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf import duration_pb2

from taskyard.errors import FieldInvalid, NotFound, TaskTypeUnknown
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.domain.egress import Egress
from taskyard_taskdb.domain.policy import DEFAULT_POLICY, TaskPolicy
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import Admission, Jitter, Kind, Overlap, Restart, RunnerLostPolicy
from taskyard_taskdb.rpc.dependencies import take_after
from taskyard_taskdb.rpc.ids import Uuid7, uuid_text
from taskyard_taskdb.rpc.limit_uses import take_limits
from taskyard_taskdb.rpc.placement import PlacedClass, PlacementClasses
from taskyard_taskdb.rpc.type_rules import DEFAULT_PRIORITY, TypeRules
from taskyard_taskdb.rpc.validate import check_metadata, check_payload, check_spec, validate
from taskyard_taskdb.rpc.webhooks import check_callback
from taskyard_taskdb.storage.create.new_task import NewTask
from taskyard_taskdb.storage.tenant.tenants import Tenant

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
# Fields of a spec that only the server sets.
_OUTPUT: Final = ("schedule", "scheduled_time")
_BACKOFF_DURATIONS: Final = ("initial", "max")
_ORPHAN_TIMEOUT = timedelta(hours=1)
# Number of cached specs, and the size above which a spec is not cached.
_CACHE_SIZE = 2000
_CACHED_BYTES = 4096
_SMALL_PAYLOAD = 1024 * 1024
# Tags of TaskSpec.payload and .execution: fields 2 and 3, messages.
_PAYLOAD_TAG = b"\x12"
_EXECUTION_TAG = b"\x1a"
# Begins the cache key of a spec without its execution; no encoded message begins like this.
_WITHOUT_EXECUTION = b"\0"
# Kinds whose arguments are validated apart from the rest of the spec, and the count and length (in characters
# of up to four bytes) below which they cannot break a rule.
_WITH_ARGUMENTS: Final = ("command", "script")
_SMALL_ARGUMENTS = 4096
_SMALL_ARGUMENT = 32_000
# Length of a plain request id, which cannot break its rule.
_PLAIN_ID_LENGTH = 64


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


class _Template(NamedTuple):
    """The values derived from a spec without its payload, and without arguments that were removed."""

    encoded: bytes
    kind: Kind
    placed: PlacedClass
    priority: int
    task_type: str
    slot: str | None
    entity_type: str | None
    entity_id: str | None
    callback: bytes | None
    policy: TaskPolicy
    packed_policy: bytes | None
    admission: Admission
    searched: Mapping[str, str]


class SpecReader:
    """Converts requests to NewTasks."""

    def __init__(self, egress: Egress | None = None) -> None:
        self.classes = PlacementClasses()
        self.egress = egress or Egress()
        self._ids = Uuid7()
        self._templates: OrderedDict[bytes, _Template] = OrderedDict()
        self._valid_rests: OrderedDict[bytes, None] = OrderedDict()

    def read(
        self,
        request: task_service_pb2.CreateTaskRequest,
        tenant: Tenant,
        actor: Actor,
        traceparent: str | None,
        rules: TypeRules | None = None,
    ) -> NewTask:
        """The task to store, under the rules of its type if that is registered. The request is modified.

        Raises FieldInvalid or TooLarge, TaskTypeUnknown, or NotFound for a foreign parent_task;
        TaskTypeDisabled by its type. SchemaChecks compares the payload with the type's schema before.
        """
        body_hash = _hash(request) if request.request_id else b""
        if rules is not None:
            rules.check_enabled()
        searched = rules.searched(request.task.spec) if rules is not None else {}
        payload = _take_payload(request.task.spec)
        after, dependencies = take_after(request.task.spec, tenant.tenant_id)
        limits, uses = take_limits(request.task.spec, tenant.tenant_id)
        execution = _take_arguments(request.task.spec) if rules is None else b""
        template = self._template(request.task.spec, rules, without_execution=bool(execution))
        self._validate_rest(request)
        metadata = request.task.metadata
        if after and template.kind is Kind.EXTERNAL:
            raise FieldInvalid.of("task.spec.after", "must be empty: the owner of an external task starts it")
        if limits and template.kind in (Kind.EXTERNAL, Kind.EMBEDDED):
            problem = f"must be empty: {template.kind.name.lower()} tasks are not admitted by limits"
            raise FieldInvalid.of("task.spec.limits", problem)
        uid = self._ids.draw()
        return NewTask(
            tenant.tenant_id,
            rules.task_id(request.task_id, uid) if rules is not None else request.task_id or uuid_text(uid),
            uid,
            template.kind,
            template.placed.class_id,
            template.priority,
            template.placed.pinned_runner,
            template.task_type,
            template.slot,
            template.entity_type,
            template.entity_id,
            _parent(metadata.parent_task, tenant.tenant_id) if metadata.parent_task else None,
            actor.type,
            actor.id,
            traceparent,
            template.encoded + payload + execution + dependencies + uses,
            template.callback,
            metadata.annotations.SerializeToString() if metadata.HasField("annotations") else None,
            pack_labels(metadata.labels, {**searched, **template.searched}),
            rules.tenant_id if rules is not None else None,
            metadata.group or None,
            template.policy,
            template.packed_policy,
            template.admission,
            template.placed.definition,
            request.request_id,
            body_hash,
            tenant.limited,
            after=after,
            limits=limits,
        )

    def _template(
        self, spec: task_pb2.TaskSpec, rules: TypeRules | None, *, without_execution: bool
    ) -> _Template:
        key = spec.SerializeToString(deterministic=True)
        if without_execution:
            key = _WITHOUT_EXECUTION + key
        if rules is not None:
            key = rules.identity + key
        found = self._templates.get(key)
        if found is None:
            found = self._make_template(spec, rules, without_execution=without_execution)
            _cache(self._templates, key, found)
        return found

    def _validate_rest(self, request: task_service_pb2.CreateTaskRequest) -> None:
        """Validate the request without its spec and its parent, which are validated before."""
        plain = request.HasField("task") and not (request.task_id or request.view)
        plain = plain and _is_plain_id(request.request_id)
        if request.HasField("task"):
            request.task.ClearField("spec")
        # Most requests have no other field, or the labels of an earlier one: nothing is left to validate.
        rest = request.task.SerializeToString(deterministic=True)
        if plain and (not rest or rest in self._valid_rests):
            return
        validate(request)
        check_metadata(request.task.metadata, "task.metadata")
        if plain:
            _cache(self._valid_rests, rest, None)

    def _make_template(
        self, given: task_pb2.TaskSpec, rules: TypeRules | None, *, without_execution: bool
    ) -> _Template:
        validate(given, "task.spec.")
        check_spec(given, "task.spec")
        if given.HasField("callback"):
            check_callback(given.callback, "task.spec.callback", self.egress)
        if rules is not None:
            given = rules.filled_in(given, "task.spec")
        spec, kind = resolve(given, "task.spec")
        for name in _OUTPUT:
            spec.ClearField(name)
        policy = policy_of(spec, kind)
        callback = spec.callback.SerializeToString() if spec.HasField("callback") else None
        spec.ClearField("callback")
        entity = spec.entity if spec.HasField("entity") else None
        placed = self.classes.of(spec, kind, rules.runner_id_pattern if rules is not None else "")
        if without_execution:
            spec.ClearField("execution")
        return _Template(
            spec.SerializeToString(),
            kind,
            placed,
            spec.priority,
            spec.task_type,
            # External tasks do not queue for a slot; their owner decides when to work on them.
            (spec.slot or None) if kind is not Kind.EXTERNAL else None,
            entity.type if entity is not None else None,
            entity.id if entity is not None else None,
            callback,
            policy,
            None if policy is DEFAULT_POLICY else policy.pack(),
            Admission(spec.admission),
            searched_slot(spec, kind),
        )


def searched_slot(spec: task_pb2.TaskSpec, kind: Kind) -> Mapping[str, str]:
    """What is kept beside the labels, so that a filter finds an external task by its slot."""
    return {search_fields.SLOT: spec.slot} if kind is Kind.EXTERNAL and spec.slot else {}


def pack_labels(labels: Mapping[str, str], searched: Mapping[str, str]) -> str | None:
    """The stored form of labels and of the values by which the task is found; None if there are none."""
    return json.dumps({**labels, **searched}, ensure_ascii=False) if labels or searched else None


V = TypeVar("V")


def _cache(cache: OrderedDict[bytes, V], key: bytes, value: V) -> None:
    if len(key) <= _CACHED_BYTES:
        cache[key] = value
    if len(cache) > _CACHE_SIZE:
        cache.popitem(last=False)


def _is_plain_id(request_id: str) -> bool:
    """Whether a request id is empty or cannot break its rule; other ids need validation."""
    plain = request_id.isascii() and request_id.replace("-", "").isalnum()
    return not request_id or (plain and len(request_id) <= _PLAIN_ID_LENGTH)


def _take_arguments(spec: task_pb2.TaskSpec) -> bytes:
    """Remove arguments that cannot break a rule; return the bytes that encode the execution with them.

    Arguments that may break a rule are kept for the validation, and nothing is returned.
    """
    kind = spec.execution.WhichOneof("kind")
    if kind not in _WITH_ARGUMENTS:
        return b""
    arguments = getattr(spec.execution, kind).args
    if len(arguments) > _SMALL_ARGUMENTS or any(
        len(argument) > _SMALL_ARGUMENT or "\0" in argument for argument in arguments
    ):
        return b""
    encoded = spec.execution.SerializeToString()
    del arguments[:]
    return _EXECUTION_TAG + _varint(len(encoded)) + encoded


def _take_payload(spec: task_pb2.TaskSpec) -> bytes:
    """Remove the payload from the spec; return the bytes that encode it."""
    if not spec.HasField("payload"):
        return b""
    payload = spec.payload
    encoded = payload.SerializeToString()
    # The rules of a payload limit the lengths of its two fields; a small payload without a content type
    # cannot break them.
    if payload.content_type or len(encoded) > _SMALL_PAYLOAD:
        validate(payload, "task.spec.payload.")
    check_payload(payload, "task.spec.payload")
    spec.ClearField("payload")
    return _PAYLOAD_TAG + _varint(len(encoded)) + encoded


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


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


def _parent(name: str, tenant_id: str) -> str:
    _, tenant, _, task_id = name.split("/")
    if tenant != tenant_id:
        raise NotFound("task", name)
    return task_id


def _hash(request: task_service_pb2.CreateTaskRequest) -> bytes:
    """The hash that a repeated request must share: all fields except parent, view and request id."""
    same = task_service_pb2.CreateTaskRequest(task=request.task, task_id=request.task_id)
    return hashlib.sha256(same.SerializeToString(deterministic=True)).digest()[:16]
