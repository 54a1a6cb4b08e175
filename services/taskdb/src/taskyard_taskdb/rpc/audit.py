"""ListAuditEvents: the change log, filtered, newest first."""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2

from taskyard.v1 import audit_pb2, common_pb2, task_service_pb2
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain import page
from taskyard_taskdb.domain.audit import resource_name
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.filter_fields import AUDIT_FIELDS
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.rpc import pages
from taskyard_taskdb.rpc.access import visible_scope
from taskyard_taskdb.rpc.response_size import fitting
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.storage.audit import listing as audit_listing
from taskyard_taskdb.storage.audit.listing import AuditQuery
from taskyard_taskdb.storage.change_log.read import LoggedChange
from taskyard_taskdb.storage.pool import Pool


class AuditHandler:
    """TaskService.ListAuditEvents."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def ListAuditEvents(
        self, request: task_service_pb2.ListAuditEventsRequest, context: Any
    ) -> task_service_pb2.ListAuditEventsResponse:
        """Return one page of audit events."""
        condition = filters.parse(request.filter, AUDIT_FIELDS) if request.filter else None
        query = AuditQuery(visible_scope(request.parent), condition)
        bound = pages.binding("audit", request.parent, request.filter)
        position = pages.decode(request.page_token, bound, int)
        before = position[0] if position else None
        size = page.page_size(request.page_size)
        async with self._pool.reading(planned=True) as tx:
            found = await audit_listing.list_page(tx, query, before, size)
        listed = fitting(map(event_message, found.changes))
        response = task_service_pb2.ListAuditEventsResponse(audit_events=listed)
        last = found.next
        if len(listed) < len(found.changes):
            last = found.changes[len(listed) - 1].id
        if last is not None:
            response.next_page_token = pages.encode((last,), bound)
        return response


def event_message(change: LoggedChange) -> audit_pb2.AuditEvent:
    """A logged change as an audit event."""
    event = audit_pb2.AuditEvent(
        name=f"tenants/{change.tenant_id}/auditEvents/{change.id}",
        event_type=ChangeEvent(change.event).word,
        resource=resource_name(change.resource_kind, change.tenant_id, change.resource_id),
        actor=common_pb2.Actor(type=common_pb2.ActorType.ValueType(change.actor_type), id=change.actor_id),
        resource_version=change.version,
        request_id=change.request_id or "",
    )
    set_time(event.time, change.time)
    _fill_details(event.details, change)
    return event


def _fill_details(details: struct_pb2.Struct, change: LoggedChange) -> None:
    values: dict[str, Any] = dict(change.details or {})
    if change.phase:
        values["to_phase"] = Phase(change.phase).name
        if change.previous_phase not in (0, change.phase):
            values["from_phase"] = Phase(change.previous_phase).name
        if change.generation:
            values |= {"generation": change.generation, "attempt": change.attempt}
        if change.event == ChangeEvent.TASK_RETRY_SCHEDULED and change.next_attempt_time:
            values["next_attempt_time"] = change.next_attempt_time.isoformat()
        if change.runner_id:
            values["runner"] = f"runners/{change.runner_id}"
    for name in ("error_code", "exit_code"):
        if getattr(change, name) is not None:
            values[name] = getattr(change, name)
    if values:
        details.update(values)
