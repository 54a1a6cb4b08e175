"""Placement classes: what matters for placing a task, hashed, so that selectors are evaluated once per class."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import NamedTuple

from taskyard.v1 import common_pb2, lease_service_pb2, runner_pb2, task_pb2

_CACHE_SIZE = 10_000


class PlacedClass(NamedTuple):
    """A class's id and definition (a serialised PlacementClass), and the runner its task is pinned to."""

    class_id: int
    definition: bytes
    pinned_runner: str


class PlacementClasses:
    """Finds the class of a spec; most specs are of a class that was seen before."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, str, str, bytes, bytes], PlacedClass] = OrderedDict()

    def of(self, spec: task_pb2.TaskSpec, kind: int) -> PlacedClass:
        """The class of a spec whose defaults are filled in."""
        function = spec.execution.function.function if kind == 5 else ""
        placement = spec.placement.SerializeToString(deterministic=True) if spec.HasField("placement") else b""
        resources = spec.resources.SerializeToString(deterministic=True) if spec.HasField("resources") else b""
        key = (kind, spec.task_type, function, placement, resources)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _define(spec, kind, function)
            if len(self._known) > _CACHE_SIZE:
                self._known.popitem(last=False)
        return found


def _define(spec: task_pb2.TaskSpec, kind: int, function: str) -> PlacedClass:
    defined = lease_service_pb2.PlacementClass(
        kind=runner_pb2.ExecutionKind.ValueType(kind), task_type=spec.task_type, function=function, placement=spec.placement
    )
    pinned = _take_pinned(defined.placement)
    if not defined.placement.ByteSize():
        defined.ClearField("placement")
    if spec.HasField("resources"):
        defined.resources.CopyFrom(_round_up(spec.resources))
    definition = defined.SerializeToString(deterministic=True)
    class_id = int.from_bytes(hashlib.sha256(definition).digest()[:8], signed=True)
    return PlacedClass(class_id, definition, pinned)


def _take_pinned(placement: task_pb2.Placement) -> str:
    # A task for one runner by name has a lane of its own; as a class, a thousand runners would be a thousand.
    if len(placement.required.runner_ids) != 1:
        return ""
    pinned = str(placement.required.runner_ids[0])
    placement.required.ClearField("runner_ids")
    if not placement.required.ByteSize():
        placement.ClearField("required")
    return pinned


def _round_up(resources: common_pb2.Resources) -> common_pb2.Resources:
    rounded = common_pb2.Resources(
        cpu_millis=round_up(resources.cpu_millis),
        memory_mb=round_up(resources.memory_mb),
        disk_mb=round_up(resources.disk_mb),
    )
    for name, amount in resources.extended.items():
        rounded.extended[name] = amount
    return rounded


def round_up(amount: int) -> int:
    """The next number with at most three significant bits, so that sizes fall into few steps of at most 25 %."""
    step = 1 << max(0, amount.bit_length() - 3)
    return min(-(-amount // step) * step, 2**31 - 1)
