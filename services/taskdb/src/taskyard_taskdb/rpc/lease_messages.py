"""Leases and verdicts as messages, for every service that speaks with holders."""

from __future__ import annotations

from collections.abc import Iterable

from taskyard.v1 import lease_pb2
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.words import Action
from taskyard_taskdb.rpc.durations import set_duration
from taskyard_taskdb.storage.lease.lease import Lease, LeaseVerdict

_ACTIONS = {
    Action.CANCEL: lease_pb2.LEASE_ACTION_CANCEL,
    Action.PAUSE: lease_pb2.LEASE_ACTION_PAUSE,
    None: lease_pb2.LEASE_ACTION_ABORT,
}


def read_lease(message: lease_pb2.LeaseRef, field: str) -> Lease:
    """The lease that a message names. Raises FieldInvalid."""
    tenant_id, task_id = parse_task_name(message.task, f"{field}.task")
    return Lease(tenant_id, task_id, message.generation, message.lease_id)


def read_leases(messages: Iterable[lease_pb2.LeaseRef], field: str) -> tuple[Lease, ...]:
    """The leases that messages name, in order. Raises FieldInvalid."""
    return tuple(read_lease(message, f"{field}[{n}]") for n, message in enumerate(messages))


def fill_verdict(told: lease_pb2.LeaseVerdict, verdict: LeaseVerdict) -> None:
    """Fills in a verdict."""
    told.lease.task = verdict.lease.name
    told.lease.generation = verdict.lease.generation
    told.lease.lease_id = verdict.lease.lease_id
    told.action = _ACTIONS[verdict.action]
    told.reason = verdict.reason
    if verdict.grace is not None:
        set_duration(told.grace_period, verdict.grace)
