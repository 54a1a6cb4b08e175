"""The rules of a task type for its tasks: defaults, bounds and patterns; `schema_checks` has the schemas."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from google.protobuf.duration_pb2 import Duration

from taskyard.errors import FieldInvalid, FieldViolation, TaskTypeDisabled
from taskyard.v1 import common_pb2, task_pb2, task_type_pb2
from taskyard_kit import patterns
from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.domain.names import LENGTHS, task_type_name
from taskyard_taskdb.rpc.convert import json_document
from taskyard_taskdb.rpc.times import to_timedelta
from taskyard_taskdb.storage.tenant.task_types import TypeRow

# Fields that a task inherits as a whole if it does not set them; they have the same names in the type.
_WHOLE = (
    "attempt_timeout",
    "checkpoint_interval",
    "priority",
    "placement",
    "retention",
    "max_steps",
    "total_timeout",
    "queue_timeout",
    "silence_timeout",
    "stop_grace_period",
    "orphan_timeout",
    "callback",
    "execution",
)
_ENUMS = ("admission", "overlap", "on_runner_lost")
DEFAULT_PRIORITY = 10
_FIELDS = frozenset(task_pb2.TaskSpec.DESCRIPTOR.fields_by_name)


class TypeRules:
    """One revision of a type, ready to be applied."""

    def __init__(self, row: TypeRow) -> None:
        self.tenant_id = row.tenant_id
        self.task_type = row.task_type
        self.revision = row.revision
        self.definition = task_type_pb2.TaskType.FromString(row.definition)
        # Part of the key under which templates of specs with these rules are cached.
        self.identity = _identity(row)
        self._id_pattern = _pattern(self.definition.task_id_pattern)

    def is_of(self, row: TypeRow) -> bool:
        """Whether these are the rules of this type, and not of a deleted type of the same name."""
        return self.identity == _identity(row)

    @property
    def name(self) -> str:
        """The resource name."""
        return task_type_name(self.tenant_id, self.task_type)

    @property
    def runner_id_pattern(self) -> str:
        """The pattern that ids of runners must match; empty for any."""
        return self.definition.runner_id_pattern

    def searched(self, spec: task_pb2.TaskSpec) -> Mapping[str, str]:
        """The values of the type's search fields in the payload, as they are stored."""
        if not self.definition.search_fields or not spec.HasField("payload"):
            return {}
        return search_fields.extract(json_document(spec.payload), self.definition.search_fields)

    def check_enabled(self) -> None:
        """Raises TaskTypeDisabled."""
        if self.definition.disabled:
            raise TaskTypeDisabled(self.name)

    def task_id(self, given: str, uid: str) -> str:
        """The id of a new task; `uid` is in text form. Raises FieldInvalid for one that does not match."""
        if given:
            self.check_task_id(given)
            return given
        prefix = self.definition.task_id_prefix
        forms = (uid, uid.replace("-", ""))
        for form in reversed(forms) if prefix else forms:
            if self._id_pattern is None or self._id_pattern.matches(prefix + form):
                return prefix + form
        problem = f"must be given: ids of {self.name} match {self.definition.task_id_pattern}"
        raise FieldInvalid.of("task_id", problem, "task_id_pattern")

    def check_task_id(self, given: str) -> None:
        """Raises FieldInvalid for an id that the type does not allow."""
        if self._id_pattern is not None and not self._id_pattern.matches(given):
            problem = (
                f"{given[:80]!r} does not match {self.definition.task_id_pattern}, as ids of {self.name} must"
            )
            raise FieldInvalid.of("task_id", problem, "task_id_pattern")

    def filled_in(self, given: task_pb2.TaskSpec, path: str) -> task_pb2.TaskSpec:
        """The spec with the type's defaults, its environment before the task's own. Raises FieldInvalid."""
        spec = task_pb2.TaskSpec()
        spec.CopyFrom(given)
        self._check_execution(given, path)
        spec.ClearField("env")
        spec.env.extend(self.definition.env)
        spec.env.extend(given.env)
        self.add_defaults(spec)
        self.check_bounds(spec, path)
        return spec

    def add_defaults(self, spec: task_pb2.TaskSpec) -> None:
        """Fill in the unset fields of the spec, in place."""
        fill_in(spec, self.definition)

    def check_bounds(self, spec: task_pb2.TaskSpec, path: str, fields: Collection[str] = _FIELDS) -> None:
        """Raises FieldInvalid with every bound that these fields of the spec violate."""
        found = _broken(spec, self.definition, path, self.name)
        broken = tuple(v for v in found if v.field.removeprefix(f"{path}.").partition(".")[0] in fields)
        if broken:
            raise FieldInvalid(broken)

    def _check_execution(self, given: task_pb2.TaskSpec, path: str) -> None:
        own = given.execution.WhichOneof("kind")
        fixed = self.definition.execution.WhichOneof("kind")
        if own and fixed and not self.definition.allow_execution_override:
            problem = f"{self.name} fixes the execution of its tasks; leave it unset"
            raise FieldInvalid.of(f"{path}.execution", problem, "allow_execution_override")


def fill_in(spec: task_pb2.TaskSpec, definition: task_type_pb2.TaskType) -> None:
    """Fill in the unset fields of the spec with the defaults of a type, in place."""
    target: Any = spec
    source: Any = definition
    for name in _WHOLE:
        if source.HasField(name) and not target.HasField(name):
            _set(target, source, name)
    for name in _ENUMS:
        if not getattr(target, name):
            setattr(target, name, getattr(source, name))
    if definition.HasField("resources"):
        resources = common_pb2.Resources()
        resources.CopyFrom(definition.resources)
        resources.MergeFrom(spec.resources)
        spec.resources.CopyFrom(resources)
    if definition.HasField("retry"):
        spec.retry.CopyFrom(_merged_retry(definition.retry, spec.retry))
    _fill_in_bounds(spec, definition)


def _fill_in_bounds(spec: task_pb2.TaskSpec, bounds: task_type_pb2.TaskType) -> None:
    """Fields that neither sets get the value nearest to the platform's default that the bounds allow."""
    if bounds.HasField("max_attempt_timeout") and not spec.HasField("attempt_timeout"):
        spec.attempt_timeout.CopyFrom(bounds.max_attempt_timeout)
    if bounds.HasField("max_max_steps") and not spec.HasField("max_steps"):
        spec.max_steps = bounds.max_max_steps
    if _is_kept(bounds) and not spec.HasField("retention"):
        spec.retention.SetInParent()
    if not spec.HasField("priority"):
        priority = max(DEFAULT_PRIORITY, bounds.min_priority)
        spec.priority = min(priority, bounds.max_priority) if bounds.HasField("max_priority") else priority


def _set(target: Any, source: Any, name: str) -> None:
    if source.DESCRIPTOR.fields_by_name[name].message_type is not None:
        getattr(target, name).CopyFrom(getattr(source, name))
    else:
        setattr(target, name, getattr(source, name))


def _merged_retry(default: common_pb2.RetryPolicy, given: common_pb2.RetryPolicy) -> common_pb2.RetryPolicy:
    merged = common_pb2.RetryPolicy()
    merged.CopyFrom(default)
    # A merge would mix the seconds of a default with the nanoseconds of a given value.
    if given.backoff.HasField("initial"):
        merged.backoff.ClearField("initial")
    if given.backoff.HasField("max"):
        merged.backoff.ClearField("max")
    merged.MergeFrom(given)
    return merged


def _broken(
    spec: task_pb2.TaskSpec, bounds: task_type_pb2.TaskType, path: str, name: str
) -> Iterator[FieldViolation]:
    if spec.HasField("attempt_timeout"):
        yield from _outside(
            f"{path}.attempt_timeout",
            spec.attempt_timeout,
            bounds.min_attempt_timeout if bounds.HasField("min_attempt_timeout") else None,
            bounds.max_attempt_timeout if bounds.HasField("max_attempt_timeout") else None,
            name,
            key=to_timedelta,
        )
    if spec.HasField("priority"):
        yield from _outside(
            f"{path}.priority",
            spec.priority,
            bounds.min_priority if bounds.HasField("min_priority") else None,
            bounds.max_priority if bounds.HasField("max_priority") else None,
            name,
        )
    if spec.HasField("max_steps"):
        most = bounds.max_max_steps if bounds.HasField("max_max_steps") else None
        yield from _outside(f"{path}.max_steps", spec.max_steps, None, most, name)
    yield from _missing(spec, bounds, path, name)
    if _is_kept(bounds) and to_timedelta(spec.retention):
        problem = f"{name} protects its tasks from deletion; set 0, which keeps them for ever"
        yield FieldViolation(f"{path}.retention", problem, "deletion_protection")
    if bounds.entity_types:
        allowed = ", ".join(bounds.entity_types)
        if not spec.HasField("entity"):
            yield FieldViolation(
                f"{path}.entity", f"{name} needs an entity of type {allowed}", "entity_types"
            )
        elif spec.entity.type not in bounds.entity_types:
            problem = f"{spec.entity.type!r} is none of {allowed}, the entity types of {name}"
            yield FieldViolation(f"{path}.entity.type", problem, "entity_types")


def _missing(
    spec: task_pb2.TaskSpec, bounds: task_type_pb2.TaskType, path: str, name: str
) -> Iterator[FieldViolation]:
    if bounds.slot_required and not spec.slot and not spec.HasField("entity"):
        yield FieldViolation(f"{path}.slot", f"{name} needs a slot or an entity", "slot_required")
    if bounds.attempt_timeout_required and not spec.HasField("attempt_timeout"):
        problem = f"{name} needs the longest time that an attempt may take"
        yield FieldViolation(f"{path}.attempt_timeout", problem, "attempt_timeout_required")


def _is_kept(definition: task_type_pb2.TaskType) -> bool:
    """Whether retention must not end: tasks of the type are neither deleted nor archived."""
    return definition.deletion_protection and not definition.archive


def _outside(
    field: str,
    value: Any,
    least: Any,
    most: Any,
    name: str,
    key: Callable[[Any], Any] = lambda value: value,
) -> Iterator[FieldViolation]:
    if least is not None and key(value) < key(least):
        problem = f"{_shown(value)} is below {_shown(least)}, the least that {name} allows"
        yield FieldViolation(field, problem, "task_type.bounds")
    if most is not None and key(value) > key(most):
        problem = f"{_shown(value)} is above {_shown(most)}, the most that {name} allows"
        yield FieldViolation(field, problem, "task_type.bounds")


def _shown(value: Any) -> str:
    return f"{to_timedelta(value).total_seconds():g} s" if isinstance(value, Duration) else str(value)


def _identity(row: TypeRow) -> bytes:
    # A type that was deleted and created again has the same revision numbers.
    revision = f"{row.tenant_id}/{row.task_type}/{row.revision}\0".encode()
    return revision + hashlib.sha256(row.definition).digest()


def _pattern(text: str) -> patterns.Pattern | None:
    return patterns.compile(text) if text else None


def check_definition(definition: task_type_pb2.TaskType, path: str) -> None:
    """Raises FieldInvalid for contradictory bounds, and for a pattern that does not compile.

    Schemas are compiled by SchemaChecks.
    """
    for field in ("task_id_pattern", "runner_id_pattern"):
        try:
            _pattern(getattr(definition, field))
        except patterns.PatternInvalid as error:
            raise FieldInvalid.of(f"{path}.{field}", error.reason, "re2") from None
    _check_order(definition, path)
    spec = task_pb2.TaskSpec()
    fill_in(spec, definition)
    # A default outside of the bounds would reject every task that relies on it.
    bounds = task_type_pb2.TaskType()
    bounds.CopyFrom(definition)
    for demand in ("entity_types", "slot_required", "attempt_timeout_required"):
        bounds.ClearField(demand)
    broken = tuple(_broken(spec, bounds, path, "the type itself"))
    if broken:
        raise FieldInvalid(broken)
    if len(definition.task_id_prefix) + 36 > LENGTHS["tasks"]:
        raise FieldInvalid.of(f"{path}.task_id_prefix", "is too long for the ids made with it")


def _check_order(definition: task_type_pb2.TaskType, path: str) -> None:
    pairs = (("min_attempt_timeout", "max_attempt_timeout"), ("min_priority", "max_priority"))
    source: Any = definition
    for least, most in pairs:
        if source.HasField(least) and source.HasField(most):
            low, high = getattr(source, least), getattr(source, most)
            plain = [to_timedelta(v) if isinstance(v, Duration) else v for v in (low, high)]
            if plain[0] > plain[1]:
                problem = f"{_shown(low)} is above {most}, which is {_shown(high)}"
                raise FieldInvalid.of(f"{path}.{least}", problem, "task_type.bounds")
