"""Placement classes of specs, cached: most specs share the class of an earlier one."""

from __future__ import annotations

from typing import NamedTuple

from taskyard.v1 import common_pb2, lease_service_pb2, runner_pb2, task_pb2
from taskyard_taskdb.domain.bounded_cache import BoundedCache
from taskyard_taskdb.domain.placement_class import class_id, pinned_runner, round_up
from taskyard_taskdb.domain.words import Kind

_CACHE_SIZE = 10_000
_CACHE_BYTES = 16 * 1024 * 1024


class PlacedClass(NamedTuple):
    """A class's id and definition (a serialised PlacementClass), and the runner its task is pinned to."""

    class_id: int
    definition: bytes
    pinned_runner: str


class PlacementClasses:
    """Finds the class of a spec."""

    def __init__(self) -> None:
        self._cache: BoundedCache[tuple[int, str, str, str, bytes, bytes], PlacedClass] = BoundedCache(
            _CACHE_SIZE, _CACHE_BYTES
        )

    def of(self, spec: task_pb2.TaskSpec, kind: Kind, runner_id_pattern: str = "") -> PlacedClass:
        """The class of a spec with its defaults; its type may restrict the ids of runners to a pattern."""
        function = spec.execution.function.function if kind is Kind.FUNCTION else ""
        placement = (
            spec.placement.SerializeToString(deterministic=True) if spec.HasField("placement") else b""
        )
        resources = (
            spec.resources.SerializeToString(deterministic=True) if spec.HasField("resources") else b""
        )
        key = (kind, spec.task_type, function, runner_id_pattern, placement, resources)
        found = self._cache.get(key)
        if found is None:
            found = _define(spec, kind, function, runner_id_pattern)
            # The definition repeats the parts of the key.
            self._cache.put(key, found, 2 * len(found.definition) + 500)
        return found


def _define(spec: task_pb2.TaskSpec, kind: Kind, function: str, runner_id_pattern: str) -> PlacedClass:
    defined = lease_service_pb2.PlacementClass(
        kind=runner_pb2.ExecutionKind.ValueType(kind),
        task_type=spec.task_type,
        function=function,
        runner_id_pattern=runner_id_pattern,
    )
    pinned = pinned_runner(spec.placement.required.runner_ids)
    defined.placement.CopyFrom(spec.placement)
    if pinned:
        defined.placement.required.ClearField("runner_ids")
    # Empty messages are removed, so that they make no separate class.
    if not defined.placement.required.ByteSize():
        defined.placement.ClearField("required")
    if not defined.placement.ByteSize():
        defined.ClearField("placement")
    if spec.HasField("resources"):
        defined.resources.CopyFrom(_round_up(spec.resources))
    definition = defined.SerializeToString(deterministic=True)
    return PlacedClass(class_id(definition), definition, pinned)


def _round_up(resources: common_pb2.Resources) -> common_pb2.Resources:
    rounded = common_pb2.Resources(
        cpu_millis=round_up(resources.cpu_millis),
        memory_mb=round_up(resources.memory_mb),
        disk_mb=round_up(resources.disk_mb),
    )
    for name, amount in resources.extended.items():
        rounded.extended[name] = amount
    return rounded
