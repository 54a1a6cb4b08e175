"""Checks of payloads and results: the cheap ones at once in the event loop, the others in a process."""

from __future__ import annotations

import time

from taskyard.errors import FieldInvalid, FieldViolation, PayloadSchemaViolation
from taskyard.v1 import common_pb2
from taskyard_taskdb.rpc import json_schema
from taskyard_taskdb.rpc.schema_processes import Job, SchemaProcesses
from taskyard_taskdb.rpc.type_rules import TypeRules

# Estimated work that costs less than the call it belongs to, below 0.2 ms.
FREE_WORK = 20_000
# What a tenant may spend in the event loop beyond that: work per second, and at once.
WORK_PER_SECOND = 10_000_000
_MAX_TENANTS = 10_000

Violations = tuple[FieldViolation, ...]


class SchemaChecks:
    """Decides for each check where it runs."""

    def __init__(self, processes: SchemaProcesses) -> None:
        self._processes = processes
        self._spent: dict[str, float] = {}

    async def compile(self, tenant_id: str, text: bytes, field: str) -> None:
        """Raises FieldInvalid for a text that is no schema, Overloaded or ServerDraining."""
        if self._has_budget(tenant_id, json_schema.compiling_work(text)):
            json_schema.compile_schema(text, field)
        elif found := await self._processes.run(tenant_id, Job(field, text)):
            raise FieldInvalid(found)

    async def check_payload(
        self, tenant_id: str, rules: TypeRules, payload: common_pb2.Payload | None, path: str
    ) -> None:
        """Raises PayloadSchemaViolation with all violations, Overloaded or ServerDraining.

        A raw payload that is not JSON passes: the checks of every payload reject it.
        """
        text = rules.definition.payload_schema
        if text:
            found = await self.check(tenant_id, text, payload, path)
        else:
            found = json_schema.check_object(payload, path)
        if found and found[0].rule != json_schema.NOT_JSON:
            raise PayloadSchemaViolation(found, rules.name)

    async def check(
        self, tenant_id: str, text: bytes, payload: common_pb2.Payload | None, path: str
    ) -> Violations:
        """The violations in a payload. Raises Overloaded or ServerDraining."""
        found = self.check_now(tenant_id, text, payload, path)
        if found is None:
            found = await self._processes.run(tenant_id, job(text, payload, path))
        return found

    def check_now(
        self, tenant_id: str, text: bytes, payload: common_pb2.Payload | None, path: str
    ) -> Violations | None:
        """The violations in a payload; None if the check takes too long for the event loop."""
        if not self._has_budget(tenant_id, json_schema.compiling_work(text)):
            return None
        schema = json_schema.compile_schema(text, "payload_schema")
        work = schema.work(json_schema.size_of(payload))
        if work <= json_schema.NOW_WORK and not self._has_budget(tenant_id, work):
            return None
        return json_schema.check_now(schema, payload, path)

    def _has_budget(self, tenant_id: str, work: int) -> bool:
        """Whether the tenant may spend this much in the event loop now; if so, it is spent."""
        if work <= FREE_WORK:
            return True
        now = time.monotonic()
        # The time at which everything spent so far is paid off.
        due = max(now, self._spent.get(tenant_id, 0.0)) + work / WORK_PER_SECOND
        if due > now + json_schema.NOW_WORK / WORK_PER_SECOND:
            return False
        if len(self._spent) >= _MAX_TENANTS:
            self._spent = {tenant: paid for tenant, paid in self._spent.items() if paid > now}
        self._spent[tenant_id] = due
        return True


def job(text: bytes, payload: common_pb2.Payload | None, path: str) -> Job:
    """The check as a job of a process."""
    return Job(path, text, b"" if payload is None else payload.SerializeToString())
