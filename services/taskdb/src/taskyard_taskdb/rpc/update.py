"""UpdateTask: the fields that a mask names, and which of them may still change."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from taskyard.errors import FieldImmutable, PhaseConflict, TaskTerminal
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.event import Edited
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.words import Kind
from taskyard_taskdb.rpc import access, convert, masks
from taskyard_taskdb.rpc.actions import repeatable_request
from taskyard_taskdb.rpc.masks import Path
from taskyard_taskdb.rpc.schema_checks import SchemaChecks
from taskyard_taskdb.rpc.spec import SpecReader, pack_labels, searched_slot
from taskyard_taskdb.rpc.spec_defaults import policy_of, resolve
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.rpc.type_rules import TypeRules
from taskyard_taskdb.rpc.validate import check_task, validate
from taskyard_taskdb.rpc.webhooks import check_callback
from taskyard_taskdb.storage.action.edit import Edit, Editor
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.read.tasks import Key, TaskRecord

_METADATA = ("labels", "annotations")
_FIXED_SPEC = frozenset({"task_type", "slot", "entity", "after", "limits", "schedule", "scheduled_time"})


class _Checked(NamedTuple):
    """The rules of a task's type, and the payload that was compared with its schema, if it changes."""

    rules: TypeRules | None
    payload: common_pb2.Payload | None


class _PayloadChanged(Exception):
    """The payload to store is not the one that was checked."""


class UpdateHandler:
    """TaskService.UpdateTask."""

    def __init__(
        self, pool: Pool, specs: SpecReader, schemas: SchemaChecks, editor: Editor, types: TypeCache
    ) -> None:
        self._pool = pool
        self._specs = specs
        self._schemas = schemas
        self._editor = editor
        self._types = types

    async def UpdateTask(
        self, request: task_service_pb2.UpdateTaskRequest, context: Any
    ) -> task_service_pb2.UpdateTaskResponse:
        validate(request)
        key = access.visible_task(request.task.name, "task.name")
        check_task(request.task, "task")
        if request.task.spec.HasField("callback"):
            check_callback(request.task.spec.callback, "task.spec.callback", self._specs.egress)
        paths = _paths(request)
        actor = access.caller()
        repeatable = repeatable_request(request, request.request_id, key)
        while True:
            checked = await self._check_type(request, paths, key)

            def decide(record: TaskRecord, task: TaskState, checked: _Checked = checked) -> Edit | None:
                return self._decide(request, paths, actor, record, task, checked)

            try:
                record = await self._editor.edit(
                    key,
                    request.task.metadata.resource_version,
                    decide,
                    repeatable,
                    validate_only=request.validate_only,
                )
            except _PayloadChanged:
                continue
            except TaskTerminal as error:
                raise PhaseConflict(error.subject, error.phase, "a task that has not ended") from None
            return task_service_pb2.UpdateTaskResponse(task=convert.task_message(record, convert.FULL))

    async def _check_type(
        self, request: task_service_pb2.UpdateTaskRequest, paths: Iterable[Path], key: Key
    ) -> _Checked:
        """The rules of the type that the task was created with, and the changed payload that matches them.

        Raises PayloadSchemaViolation. The check may take long, so that it is made without a lock.
        """
        async with self._pool.reading() as tx:
            record = await tasks.read(tx, *key)
        if record is None or record.task_type_tenant is None:
            return _Checked(None, None)
        rules = await self._types.find(key[0], record.task_type)
        if rules is None or not any(path[:2] == ("spec", "payload") for path in paths):
            return _Checked(rules, None)
        after = _changed(request, paths, convert.task_message(record, convert.FULL)).spec
        payload = after.payload if after.HasField("payload") else None
        await self._schemas.check_payload(key[0], rules, payload, "task.spec.payload")
        return _Checked(rules, after.payload)

    def _decide(
        self,
        request: task_service_pb2.UpdateTaskRequest,
        paths: Iterable[Path],
        actor: Actor,
        record: TaskRecord,
        task: TaskState,
        checked: _Checked,
    ) -> Edit | None:
        before = convert.task_message(record, convert.FULL)
        after = _changed(request, paths, before)
        rules = checked.rules
        if checked.payload is not None and after.spec.payload != checked.payload:
            # A mask may change a part of the payload, and another call has changed the rest.
            raise _PayloadChanged
        _reject_changed_identity(before.spec, request)
        if rules is not None:
            _apply(rules, after.spec, {path[1] for path in paths if path[0] == "spec"})
        spec, kind = resolve(after.spec, "task.spec")
        after.spec.CopyFrom(spec)
        after.ClearField("status")
        validate(after, "task.")
        if Kind.EMBEDDED in (kind, record.kind) and (
            kind,
            after.spec.placement,
            after.spec.on_runner_lost,
        ) != (
            record.kind,
            before.spec.placement,
            before.spec.on_runner_lost,
        ):
            raise FieldImmutable.of(
                "task.spec.execution", "an embedded task belongs to its process; create another task"
            )
        if (kind is Kind.EXTERNAL) != task.external:
            raise FieldImmutable.of(
                "task.spec.execution", "external work and runners' work are not exchanged"
            )
        if after.spec == before.spec and _same_metadata(before, after):
            return None
        return self._edit(request, actor, before.spec, after, kind, task, rules)

    def _edit(
        self,
        request: task_service_pb2.UpdateTaskRequest,
        actor: Actor,
        before: task_pb2.TaskSpec,
        after: task_pb2.Task,
        kind: Kind,
        task: TaskState,
        rules: TypeRules | None,
    ) -> Edit:
        spec = after.spec
        placed = self._specs.classes.of(spec, kind, rules.runner_id_pattern if rules is not None else "")
        heavy = _heavy(before) != _heavy(spec)
        policy = policy_of(spec, kind)
        if not heavy:
            policy = replace(task.policy, has_callback=policy.has_callback, retention=policy.retention)
        event = Edited(
            actor=actor,
            request_id=request.request_id or None,
            priority=spec.priority if spec.priority != before.priority else None,
            spec=heavy,
            class_id=placed.class_id if placed.class_id != task.class_id else None,
            pinned_runner=placed.pinned_runner if placed.pinned_runner != task.pinned_runner else None,
            policy=policy if policy != task.policy else None,
        )
        callback = spec.callback.SerializeToString() if spec.HasField("callback") else None
        spec.ClearField("callback")
        metadata = after.metadata
        searched = rules.searched(spec) if rules is not None else {}
        return Edit(
            event,
            kind,
            placed.definition,
            spec.SerializeToString(),
            callback,
            metadata.annotations.SerializeToString() if metadata.HasField("annotations") else None,
            pack_labels(metadata.labels, {**searched, **searched_slot(spec, kind)}),
        )


def _changed(
    request: task_service_pb2.UpdateTaskRequest, paths: Iterable[Path], before: task_pb2.Task
) -> task_pb2.Task:
    after = task_pb2.Task()
    after.CopyFrom(before)
    for path in paths:
        masks.copy(request.task, after, path)
    return after


def _apply(rules: TypeRules, spec: task_pb2.TaskSpec, fields: Collection[str]) -> None:
    """Fill in cleared fields by the type, in place. Raises FieldInvalid.

    The type may have changed since the task was created: its new rules apply to the changed fields only.
    """
    whole = task_pb2.TaskSpec()
    whole.CopyFrom(spec)
    rules.add_defaults(whole)
    for name in fields:
        masks.copy(whole, spec, (name,))
    rules.check_bounds(spec, "task.spec", fields)


def _heavy(spec: task_pb2.TaskSpec) -> task_pb2.TaskSpec:
    """The part of a spec that only a task that never started may change."""
    heavy = task_pb2.TaskSpec()
    heavy.CopyFrom(spec)
    heavy.ClearField("priority")
    heavy.ClearField("callback")
    heavy.ClearField("retention")
    return heavy


def _same_metadata(before: task_pb2.Task, after: task_pb2.Task) -> bool:
    return (
        before.metadata.labels == after.metadata.labels
        and before.metadata.annotations == after.metadata.annotations
        and before.metadata.HasField("annotations") == after.metadata.HasField("annotations")
    )


def _paths(request: task_service_pb2.UpdateTaskRequest) -> list[Path]:
    """The fields to change. Raises FieldInvalid for an unknown one, FieldImmutable for one that is fixed."""
    if not request.update_mask.paths:
        spec = [("spec", field.name) for field, _ in request.task.spec.ListFields()]
        metadata = [("metadata", field.name) for field, _ in request.task.metadata.ListFields()]
        return [path for path in (*spec, *metadata) if _is_mutable(path)]
    paths: list[Path] = []
    for text in request.update_mask.paths:
        path = tuple(text.split("."))
        if path in (("*",), ("spec",), ("metadata",)):
            paths += [p for p in _every_path() if path in (("*",), p[:1])]
            continue
        _check_path(path, text)
        paths.append(path)
    return paths


def _every_path() -> list[Path]:
    spec = [("spec", name) for name in task_pb2.TaskSpec.DESCRIPTOR.fields_by_name]
    return [path for path in (*spec, *(("metadata", name) for name in _METADATA)) if _is_mutable(path)]


def _is_mutable(path: Path) -> bool:
    if path[0] == "metadata":
        return len(path) > 1 and path[1] in _METADATA
    return path[0] == "spec" and path[1] not in _FIXED_SPEC


def _check_path(path: Path, text: str) -> None:
    masks.check_path(task_pb2.Task.DESCRIPTOR, path, "a task")
    if not _is_mutable(path):
        raise FieldImmutable.of("update_mask", f"{text} cannot be changed", "field_mask")


def _reject_changed_identity(before: task_pb2.TaskSpec, request: task_service_pb2.UpdateTaskRequest) -> None:
    """Raises FieldImmutable for a changed fixed field; sending it unchanged, as read before, is allowed."""
    for field, value in request.task.spec.ListFields():
        if field.name in _FIXED_SPEC and value != getattr(before, field.name):
            raise FieldImmutable.of(f"task.spec.{field.name}", "cannot be changed; create another task")
