"""AdminService: the doctor, quarantines, and the secrets that sign webhooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from taskyard.errors import FieldInvalid
from taskyard.v1 import admin_service_pb2, task_pb2
from taskyard_taskdb.domain import page
from taskyard_taskdb.domain.group import prerequisite_name
from taskyard_taskdb.domain.names import parse_tenant_name
from taskyard_taskdb.domain.webhook import show_secret
from taskyard_taskdb.rpc import access, pages
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.storage.doctor import checks as doctor_checks
from taskyard_taskdb.storage.doctor.checks import CHECKS, Check, Finding
from taskyard_taskdb.storage.doctor.repairs import RepairContext
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.quarantine import holds as quarantine_holds
from taskyard_taskdb.storage.quarantine import quarantined_specs
from taskyard_taskdb.storage.webhook import outbox as webhook_outbox

OnCheckRan = Callable[[str, int, int], None]
"""Called after each check with its name, the number of findings left and the number repaired."""


class AdminHandler:
    """AdminService."""

    def __init__(
        self,
        pool: Pool,
        after_commit: Callable[[CommitNotice], None],
        check_ran: OnCheckRan,
        run_job: Callable[[str], Awaitable[None]],
    ) -> None:
        self._pool = pool
        self._after_commit = after_commit
        self._check_ran = check_ran
        self._run_job = run_job

    async def RunDoctor(
        self, request: admin_service_pb2.RunDoctorRequest, context: Any
    ) -> admin_service_pb2.RunDoctorResponse:
        repair_context = RepairContext(self._pool, self._after_commit, access.caller(), self._run_job)
        response = admin_service_pb2.RunDoctorResponse(healthy=True)
        for check in _chosen(request):
            repair = request.repair and (not check.only_by_name or check.name in request.checks)
            found = await doctor_checks.run_check(self._pool, check, repair_context if repair else None)
            self._check_ran(check.name, found.remaining, found.repaired)
            response.findings.append(_message(found))
            response.healthy &= not found.remaining
        return response

    async def ListQuarantines(
        self, request: admin_service_pb2.ListQuarantinesRequest, context: Any
    ) -> admin_service_pb2.ListQuarantinesResponse:
        tenant = parse_tenant_name(request.parent)
        bound, size = pages.binding("quarantines", tenant), page.page_size(request.page_size)
        after = pages.decode(request.page_token, bound, str, str) or ("", "")
        async with self._pool.reading(planned=True) as tx:
            found = await quarantined_specs.page(tx, None if tenant == "-" else tenant, after, size + 1)
        response = admin_service_pb2.ListQuarantinesResponse()
        for quarantine in found[:size]:
            message = response.quarantines.add(
                name=f"tenants/{quarantine.tenant_id}/quarantines/{quarantine.digest}",
                task_type=quarantine.task_type,
                runner_loss_count=quarantine.runner_loss_count,
                example_task=f"tenants/{quarantine.tenant_id}/tasks/{quarantine.example_task_id}",
            )
            set_time(message.create_time, quarantine.create_time)
        if len(found) > size:
            last = found[size - 1]
            response.next_page_token = pages.encode((last.tenant_id, last.digest), bound)
        return response

    async def ReleaseQuarantine(
        self, request: admin_service_pb2.ReleaseQuarantineRequest, context: Any
    ) -> admin_service_pb2.ReleaseQuarantineResponse:
        _, tenant_id, _, digest = request.name.split("/")
        actor = access.caller()
        self._after_commit(
            await self._pool.run(lambda tx: quarantine_holds.release(tx, tenant_id, digest, actor))
        )
        return admin_service_pb2.ReleaseQuarantineResponse()

    async def GetWebhookSecret(
        self, request: admin_service_pb2.GetWebhookSecretRequest, context: Any
    ) -> admin_service_pb2.GetWebhookSecretResponse:
        tenant_id = access.visible_tenant(request.parent)
        actor = access.caller()
        found = await self._pool.run(
            lambda tx: (
                webhook_outbox.rotate_secret(tx, tenant_id, actor)
                if request.rotate
                else webhook_outbox.signing_secrets(tx, tenant_id)
            )
        )
        response = admin_service_pb2.GetWebhookSecretResponse(secret=show_secret(found.values[0]))
        set_time(response.rotate_time, found.rotate_time)
        return response

    async def ListWebhookDeliveries(
        self, request: admin_service_pb2.ListWebhookDeliveriesRequest, context: Any
    ) -> admin_service_pb2.ListWebhookDeliveriesResponse:
        tenant_id = access.visible_scope(request.parent)
        bound, size = pages.binding("webhooks", tenant_id or "-"), page.page_size(request.page_size)
        (after,) = pages.decode(request.page_token, bound, int) or (0,)
        async with self._pool.reading(planned=True) as tx:
            found = await webhook_outbox.list_deliveries(tx, tenant_id, after, size + 1)
        response = admin_service_pb2.ListWebhookDeliveriesResponse()
        for delivery in found[:size]:
            message = response.deliveries.add(
                task=prerequisite_name(delivery.tenant_id, delivery.task_id),
                url=task_pb2.Callback.FromString(delivery.callback).url,
                attempt_count=delivery.attempt,
                last_error=delivery.last_error,
            )
            set_time(message.create_time, delivery.create_time)
            set_time(message.next_attempt_time, delivery.due_time)
        if len(found) > size:
            response.next_page_token = pages.encode((found[size - 1].id,), bound)
        return response


def _chosen(request: admin_service_pb2.RunDoctorRequest) -> list[Check]:
    for index, name in enumerate(request.checks):
        if name not in doctor_checks.NAMES:
            names = ", ".join(doctor_checks.NAMES)
            raise FieldInvalid.of(f"checks[{index}]", f"{name[:80]!r} is not a check; use one of {names}")
    return [check for check in CHECKS if not request.checks or check.name in request.checks]


def _message(found: Finding) -> admin_service_pb2.DoctorFinding:
    check = found.check
    return admin_service_pb2.DoctorFinding(
        check=check.name,
        severity=admin_service_pb2.DoctorSeverity.ValueType(found.severity),
        count=found.count,
        repaired_count=found.repaired,
        examples=found.examples,
        message=_sentence(found),
    )


def _sentence(found: Finding) -> str:
    check = found.check
    if not found.count:
        return f"no {check.about}"
    text = f"{found.count} {check.about}"
    if found.acknowledged:
        text += f", {found.acknowledged} of them acknowledged earlier"
    if found.repaired:
        text += f", {found.repaired} {'acknowledged' if check.only_by_name else 'repaired'}"
    if found.remaining and found.note:
        text += f"; {found.note}"
    elif found.remaining and check.only_by_name:
        text += f"; find out who did it, then acknowledge it by `repair` of {check.name!r} by name"
    return text
