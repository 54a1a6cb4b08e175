"""A CreateTaskRequest becomes a NewTask: validated, with defaults, slot, policy and placement class.

Most tasks differ from earlier ones only in payload, arguments and ids. The validation of the rest and the
values derived from it are cached: those of the spec as a template, those of the whole request as a shape.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from taskyard.errors import FieldInvalid, NotFound
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.domain.bounded_cache import BoundedCache
from taskyard_taskdb.domain.dependency import Prerequisite
from taskyard_taskdb.domain.egress import Egress
from taskyard_taskdb.domain.limit import LimitUse
from taskyard_taskdb.domain.policy import DEFAULT_POLICY, TaskPolicy
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import Admission, Kind
from taskyard_taskdb.rpc.dependencies import take_after
from taskyard_taskdb.rpc.ids import Uuid7, uuid_bytes
from taskyard_taskdb.rpc.limit_uses import take_limits
from taskyard_taskdb.rpc.placement import PlacedClass, PlacementClasses
from taskyard_taskdb.rpc.spec_defaults import policy_of, resolve
from taskyard_taskdb.rpc.type_rules import TypeRules
from taskyard_taskdb.rpc.validate import check_metadata, check_payload, check_spec, validate
from taskyard_taskdb.rpc.webhooks import check_callback
from taskyard_taskdb.storage.create.new_task import NewTask
from taskyard_taskdb.storage.tenant.tenants import Tenant

# Fields of a spec that only the server sets.
_OUTPUT: Final = ("schedule", "scheduled_time")
# Number of cached specs, their bytes, and the size above which the specs of requests are not cached.
_CACHE_SIZE = 2000
_CACHE_BYTES = 16 * 1024 * 1024
_CACHED_BYTES = 4096
# What a cached spec takes beside its encoded parts.
_OBJECT_BYTES = 2000
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
# Lengths of plain ids, which cannot break their rules.
_REQUEST_ID_LENGTH = 64
_TASK_ID_LENGTH = 256


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


class _Shape(NamedTuple):
    """The values derived from a request without payload, removed arguments and ids."""

    template: _Template
    parent_task_id: str | None
    annotations: bytes | None
    labels: Mapping[str, str]
    packed_labels: str | None
    group_id: str | None
    after: tuple[Prerequisite, ...]
    limits: tuple[LimitUse, ...]
    # The encoded dependencies and limits of the spec.
    relations: bytes


_ShapeKey = tuple[str, bytes, bool, bytes]


class SpecReader:
    """Converts requests to NewTasks."""

    def __init__(self, egress: Egress | None = None) -> None:
        self.classes = PlacementClasses()
        self.egress = egress or Egress()
        self._ids = Uuid7()
        self._shapes: BoundedCache[_ShapeKey, _Shape] = BoundedCache(_CACHE_SIZE, _CACHE_BYTES)
        self._templates: BoundedCache[bytes, _Template] = BoundedCache(_CACHE_SIZE, _CACHE_BYTES)
        self._valid_rests: BoundedCache[bytes, bool] = BoundedCache(_CACHE_SIZE, _CACHE_BYTES)

    def draw_uids(self, count: int) -> list[str]:
        """New ids for `read` and `repeat`, in ascending order."""
        return self._ids.draw_texts(count)

    def read(
        self,
        request: task_service_pb2.CreateTaskRequest,
        tenant: Tenant,
        actor: Actor,
        traceparent: str | None,
        rules: TypeRules | None = None,
        uid: str = "",
    ) -> NewTask:
        """The task to store, under the rules of its type if that is registered. The request is modified.

        Raises FieldInvalid or TooLarge, TaskTypeUnknown, or NotFound for a foreign parent_task;
        TaskTypeDisabled by its type. SchemaChecks compares the payload with the type's schema before.
        """
        # They could be nested more deeply than a runner can read them.
        request.task.DiscardUnknownFields()
        request_id, given_id = request.request_id, request.task_id
        body_hash = _hash(request) if request_id else b""
        if rules is not None:
            rules.check_enabled()
        spec = request.task.spec
        searched = rules.searched(spec) if rules is not None else {}
        payload = _take_payload(spec)
        execution = _take_arguments(spec) if rules is None else b""
        shape = self._shape(request, tenant.tenant_id, rules, without_execution=bool(execution))
        template = shape.template
        task_id, stored_uid = _identify(given_id, uid or self._ids.draw_texts(1)[0], rules)
        return NewTask(
            tenant.tenant_id,
            task_id,
            stored_uid,
            template.kind,
            template.placed.class_id,
            template.priority,
            template.placed.pinned_runner,
            template.task_type,
            template.slot,
            template.entity_type,
            template.entity_id,
            shape.parent_task_id,
            actor.type,
            actor.id,
            traceparent,
            template.encoded + payload + execution + shape.relations,
            template.callback,
            shape.annotations,
            pack_labels(shape.labels, {**searched, **template.searched}) if searched else shape.packed_labels,
            rules.tenant_id if rules is not None else None,
            shape.group_id,
            template.policy,
            template.packed_policy,
            template.admission,
            template.placed.definition,
            request_id,
            body_hash,
            tenant.limited,
            after=shape.after,
            limits=shape.limits,
        )

    def repeat(self, task: NewTask, uid: str, rules: TypeRules | None = None) -> NewTask:
        """The task of one more request that is equal to the one of `task` and gives no task id.

        Raises FieldInvalid if ids of its type do not match this uid.
        """
        task_id, stored_uid = _identify("", uid, rules)
        # Adding tuples takes half the time of unpacking them.
        return tuple.__new__(NewTask, task[:1] + (task_id, stored_uid) + task[3:])  # noqa: RUF005

    def _shape(
        self,
        request: task_service_pb2.CreateTaskRequest,
        tenant_id: str,
        rules: TypeRules | None,
        *,
        without_execution: bool,
    ) -> _Shape:
        if _is_plain_id(request.request_id, _REQUEST_ID_LENGTH) and _is_plain_id(
            request.task_id, _TASK_ID_LENGTH
        ):
            request.ClearField("request_id")
            request.ClearField("task_id")
        encoded = request.SerializeToString(deterministic=True)
        key = (tenant_id, rules.identity if rules is not None else b"", without_execution, encoded)
        found = self._shapes.get(key)
        if found is None:
            found = self._make_shape(request, tenant_id, rules, without_execution=without_execution)
            if len(encoded) <= _CACHED_BYTES:
                self._shapes.put(key, found, 2 * len(encoded) + len(found.template.encoded) + _OBJECT_BYTES)
        return found

    def _make_shape(
        self,
        request: task_service_pb2.CreateTaskRequest,
        tenant_id: str,
        rules: TypeRules | None,
        *,
        without_execution: bool,
    ) -> _Shape:
        after, dependencies = take_after(request.task.spec, tenant_id)
        limits, uses = take_limits(request.task.spec, tenant_id)
        template = self._template(request.task.spec, rules, without_execution=without_execution)
        self._validate_rest(request)
        metadata = request.task.metadata
        if after and template.kind is Kind.EXTERNAL:
            raise FieldInvalid.of("task.spec.after", "must be empty: the owner of an external task starts it")
        if limits and template.kind in (Kind.EXTERNAL, Kind.EMBEDDED):
            problem = f"must be empty: {template.kind.name.lower()} tasks are not admitted by limits"
            raise FieldInvalid.of("task.spec.limits", problem)
        labels = dict(metadata.labels)
        return _Shape(
            template,
            _parent(metadata.parent_task, tenant_id) if metadata.parent_task else None,
            metadata.annotations.SerializeToString() if metadata.HasField("annotations") else None,
            labels,
            pack_labels(labels, template.searched),
            metadata.group or None,
            after,
            limits,
            dependencies + uses,
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
            if len(key) <= _CACHED_BYTES:
                # With the defaults of its type a spec may be much larger than its key.
                self._templates.put(key, found, len(key) + len(found.encoded) + _OBJECT_BYTES)
        return found

    def _validate_rest(self, request: task_service_pb2.CreateTaskRequest) -> None:
        """Validate the request without its spec and its parent, which are validated before."""
        plain = request.HasField("task") and not (request.task_id or request.request_id or request.view)
        if request.HasField("task"):
            request.task.ClearField("spec")
        # Most requests have no other field, or the labels of an earlier one: nothing is left to validate.
        rest = request.task.SerializeToString(deterministic=True)
        if plain and (not rest or self._valid_rests.get(rest)):
            return
        validate(request)
        check_metadata(request.task.metadata, "task.metadata")
        if plain and len(rest) <= _CACHED_BYTES:
            self._valid_rests.put(rest, True, len(rest))

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


def _is_plain_id(given: str, length: int) -> bool:
    """Whether an id is empty or cannot break its rule; other ids need validation."""
    return not given or (len(given) <= length and given.isascii() and given.replace("-", "").isalnum())


def _identify(given: str, uid: str, rules: TypeRules | None) -> tuple[str, bytes | None]:
    """The id of a task and the uid that is stored beside it: None where the id is its text."""
    task_id = rules.task_id(given, uid) if rules is not None else given or uid
    return task_id, None if task_id == uid else uuid_bytes(uid)


def _take_arguments(spec: task_pb2.TaskSpec) -> bytes:
    """Remove arguments that cannot break a rule; return the bytes that encode the execution with them.

    Arguments that may break a rule are kept for the validation, and nothing is returned.
    """
    kind = spec.execution.WhichOneof("kind")
    if kind not in _WITH_ARGUMENTS:
        return b""
    execution = spec.execution
    arguments = getattr(execution, kind).args
    encoded = execution.SerializeToString()
    if arguments:
        if len(arguments) > _SMALL_ARGUMENTS or any(
            len(argument) > _SMALL_ARGUMENT or "\0" in argument for argument in arguments
        ):
            return b""
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


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def _varint(value: int) -> bytes:
    if value < len(_ONE_BYTE):
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _parent(name: str, tenant_id: str) -> str:
    _, tenant, _, task_id = name.split("/")
    if tenant != tenant_id:
        raise NotFound("task", name)
    return task_id


def _hash(request: task_service_pb2.CreateTaskRequest) -> bytes:
    """The hash that a repeated request must share: all fields except parent, view and request id."""
    same = task_service_pb2.CreateTaskRequest(task=request.task, task_id=request.task_id)
    return hashlib.sha256(same.SerializeToString(deterministic=True)).digest()[:16]
