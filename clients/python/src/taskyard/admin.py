"""The administrator's API: tenants, keys, task types, runners and the health of the data.

Methods take and return the proto messages of taskyard.v1, which document each field.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from google.protobuf.field_mask_pb2 import FieldMask

from taskyard.channels import Channels, deferred
from taskyard.convert import Seconds, to_payload, to_timedelta, to_timestamp
from taskyard.names import new_request_id, runner_name, task_type_name, tenant_name
from taskyard.pages import pages
from taskyard.stream import Stream
from taskyard.v1 import admin_service_pb2 as doctor_pb
from taskyard.v1 import (
    api_key_pb2,
    api_key_service_pb2,
    runner_pb2,
    runner_service_pb2,
    task_type_pb2,
    task_type_service_pb2,
    tenant_pb2,
    tenant_service_pb2,
)
from taskyard.v1.admin_service_pb2_grpc import AdminServiceStub
from taskyard.v1.api_key_service_pb2_grpc import ApiKeyServiceStub
from taskyard.v1.runner_service_pb2_grpc import RunnerServiceStub
from taskyard.v1.task_type_service_pb2_grpc import TaskTypeServiceStub
from taskyard.v1.tenant_service_pb2_grpc import TenantServiceStub

if TYPE_CHECKING:
    from taskyard.v1.admin_service_pb2_grpc import AdminServiceAsyncStub
    from taskyard.v1.api_key_service_pb2_grpc import ApiKeyServiceAsyncStub
    from taskyard.v1.runner_service_pb2_grpc import RunnerServiceAsyncStub
    from taskyard.v1.task_type_service_pb2_grpc import TaskTypeServiceAsyncStub
    from taskyard.v1.tenant_service_pb2_grpc import TenantServiceAsyncStub

PAGE_SIZE = 1000


def _identity(message: Any) -> Any:
    return message


class Admin:
    """The administrator's side of a Client; uses the context's admin_key if it has one."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    # Tenants

    async def create_tenant(
        self, tenant_id: str, tenant: tenant_pb2.Tenant, *, validate_only: bool = False
    ) -> tenant_pb2.Tenant:
        """Creates a tenant; display_name and tier are required. With `validate_only` nothing is created.

        Example:
            acme = tenant_pb2.Tenant(display_name="Acme", tier=tenant_pb2.TENANT_TIER_FREE)
            await client.admin.create_tenant("acme", acme)
        """
        request = tenant_service_pb2.CreateTenantRequest(
            tenant_id=tenant_id, tenant=tenant, request_id=new_request_id(), validate_only=validate_only
        )
        return (await self._channels.call(self._tenants.CreateTenant, request)).tenant

    async def get_tenant(self, tenant: str) -> tenant_pb2.Tenant:
        """Returns a tenant.

        Example:
            print((await client.admin.get_tenant("acme")).effective_quota)
        """
        request = tenant_service_pb2.GetTenantRequest(name=tenant_name(tenant))
        return (await self._channels.call(self._tenants.GetTenant, request)).tenant

    def tenants(self, filter: str = "") -> Stream[tenant_pb2.Tenant]:
        """All tenants, by id; the filter may name tier, suspended and create_time.

        Example:
            print([tenant.name async for tenant in client.admin.tenants("tier = FREE")])
        """
        request = tenant_service_pb2.ListTenantsRequest(filter=filter, page_size=PAGE_SIZE)
        return Stream(pages(self._channels, lambda: self._tenants.ListTenants, request, "tenants", _identity))

    async def update_tenant(
        self, tenant: tenant_pb2.Tenant, *paths: str, validate_only: bool = False
    ) -> tenant_pb2.Tenant:
        """Changes the fields named by `paths`, or every field that is set.

        Example:
            acme = await client.admin.get_tenant("acme")
            acme.suspended = True
            await client.admin.update_tenant(acme, "suspended")
        """
        request = tenant_service_pb2.UpdateTenantRequest(
            tenant=tenant, update_mask=FieldMask(paths=paths), validate_only=validate_only
        )
        return (await self._channels.call(self._tenants.UpdateTenant, request)).tenant

    async def delete_tenant(self, tenant: str, *, force: bool = False) -> None:
        """Deletes a tenant permanently; `force` also deletes its task types and tasks.

        Example:
            other = tenant_pb2.Tenant(display_name="Other", tier=tenant_pb2.TENANT_TIER_FREE)
            await client.admin.create_tenant("other", other)
            await client.admin.delete_tenant("other", force=True)
        """
        request = tenant_service_pb2.DeleteTenantRequest(name=tenant_name(tenant), force=force)
        await self._channels.call(self._tenants.DeleteTenant, request)

    async def tenant_usage(self, tenant: str) -> tenant_service_pb2.GetTenantUsageResponse:
        """Returns how much of its quota a tenant uses.

        Example:
            print((await client.admin.tenant_usage("acme")).queued_tasks)
        """
        request = tenant_service_pb2.GetTenantUsageRequest(name=tenant_name(tenant))
        return await self._channels.call(self._tenants.GetTenantUsage, request)

    # Keys

    async def create_key(self, key: api_key_pb2.ApiKey, key_id: str = "") -> tuple[api_key_pb2.ApiKey, str]:
        """Creates a key; the second value is its secret, which cannot be read again.

        Example:
            wanted = api_key_pb2.ApiKey(kind=api_key_pb2.PRINCIPAL_KIND_TENANT, tenant="acme")
            made, secret = await client.admin.create_key(wanted)
        """
        request = api_key_service_pb2.CreateApiKeyRequest(api_key_id=key_id, api_key=key)
        made = await self._channels.call(self._keys.CreateApiKey, request)
        return made.api_key, made.secret

    def keys(self) -> Stream[api_key_pb2.ApiKey]:
        """All keys that the caller may see, without their secrets.

        Example:
            print([key.name async for key in client.admin.keys()])
        """
        request = api_key_service_pb2.ListApiKeysRequest(page_size=PAGE_SIZE)
        return Stream(pages(self._channels, lambda: self._keys.ListApiKeys, request, "api_keys", _identity))

    async def create_sign_in_code(self) -> tuple[str, datetime]:
        """A code that signs one browser in, once, with the rights of the key; and when it expires.

        Example:
            code, expire_time = await client.admin.create_sign_in_code()
        """
        request = api_key_service_pb2.CreateSignInCodeRequest()
        made = await self._channels.call(self._keys.CreateSignInCode, request)
        return made.code, made.expire_time.ToDatetime(UTC)

    async def revoke_key(self, key: str) -> api_key_pb2.ApiKey:
        """Revokes a key permanently. Repeating it is safe.

        Example:
            wanted = api_key_pb2.ApiKey(kind=api_key_pb2.PRINCIPAL_KIND_TENANT, tenant="acme")
            made, _ = await client.admin.create_key(wanted)
            await client.admin.revoke_key(made.name)
        """
        request = api_key_service_pb2.RevokeApiKeyRequest(name=f"apiKeys/{key.removeprefix('apiKeys/')}")
        return (await self._channels.call(self._keys.RevokeApiKey, request)).api_key

    # Task types

    async def get_type(self, task_type: str) -> task_type_pb2.TaskType:
        """A task type of the context's tenant, or of the one in its full name.

        Example:
            print((await client.admin.get_type("encode")).description)
        """
        request = task_type_service_pb2.GetTaskTypeRequest(name=await self._type_name(task_type))
        return (await self._channels.call(self._types.GetTaskType, request)).task_type

    def types(self, filter: str = "", *, tenant: str = "") -> Stream[task_type_pb2.TaskType]:
        """The task types of a tenant, without schemas and configuration.

        Example:
            print([task_type.name async for task_type in client.admin.types()])
        """

        async def first() -> AsyncGenerator[Sequence[task_type_pb2.TaskType]]:
            request = task_type_service_pb2.ListTaskTypesRequest(
                parent=tenant_name(tenant or await self._channels.tenant()),
                filter=filter,
                page_size=PAGE_SIZE,
            )
            return pages(self._channels, lambda: self._types.ListTaskTypes, request, "task_types", _identity)

        return Stream(deferred(first))

    async def put_type(
        self, task_type: task_type_pb2.TaskType, *paths: str, validate_only: bool = False
    ) -> task_type_pb2.TaskType:
        """Creates a task type, or updates the fields named by `paths`, by default every field that is set.

        Its name is an id or a full name. With `validate_only` nothing is changed.

        Example:
            encode = task_type_pb2.TaskType(name="encode", description="Encodes a video")
            encode.execution.command.program = "true"
            await client.admin.put_type(encode)
        """
        request = task_type_service_pb2.UpdateTaskTypeRequest(
            task_type=task_type,
            update_mask=FieldMask(paths=paths),
            allow_missing=True,
            validate_only=validate_only,
        )
        request.task_type.name = await self._type_name(task_type.name)
        return (await self._channels.call(self._types.UpdateTaskType, request)).task_type

    async def delete_type(self, task_type: str) -> None:
        """Deletes a task type that no live task uses.

        Example:
            await client.admin.put_type(task_type_pb2.TaskType(name="outdated"))
            await client.admin.delete_type("outdated")
        """
        request = task_type_service_pb2.DeleteTaskTypeRequest(name=await self._type_name(task_type))
        await self._channels.call(self._types.DeleteTaskType, request)

    async def validate_payload(
        self, task_type: str, payload: Any
    ) -> task_type_service_pb2.ValidatePayloadResponse:
        """Checks a payload against the type's schema; the response lists the violations.

        Example:
            assert (await client.admin.validate_payload("encode", {"width": 640})).valid
        """
        request = task_type_service_pb2.ValidatePayloadRequest(
            name=await self._type_name(task_type), payload=to_payload(payload)
        )
        return await self._channels.call(self._types.ValidatePayload, request)

    # Runners

    async def get_runner(self, runner: str) -> runner_pb2.Runner:
        """Returns a runner with the tasks it holds.

        Example:
            print((await client.admin.get_runner("local")).registration.capacity)
        """
        request = runner_service_pb2.GetRunnerRequest(name=runner_name(runner))
        return (await self._channels.call(self._runners.GetRunner, request)).runner

    def runners(self, filter: str = "", *, deleted: bool = False) -> Stream[runner_pb2.Runner]:
        """All runners, by id; the filter may name state, occupancy, labels.KEY and more.

        Example:
            print([runner.name async for runner in client.admin.runners()])
        """
        request = runner_service_pb2.ListRunnersRequest(
            filter=filter, show_deleted=deleted, page_size=PAGE_SIZE
        )
        return Stream(pages(self._channels, lambda: self._runners.ListRunners, request, "runners", _identity))

    async def label_runner(self, runner: str, labels: Mapping[str, str]) -> runner_pb2.Runner:
        """Sets the administrator's labels of a runner to exactly these.

        Example:
            await client.admin.label_runner("local", {"zone": "a"})
            await client.admin.label_runner("local", {})
        """
        changed = runner_pb2.Runner(name=runner_name(runner), admin_labels=labels)
        request = runner_service_pb2.UpdateRunnerRequest(
            runner=changed, update_mask=FieldMask(paths=["admin_labels"])
        )
        return (await self._channels.call(self._runners.UpdateRunner, request)).runner

    async def drain(
        self,
        runner: str,
        *,
        mode: Literal["finish", "release"] = "finish",
        deadline: Seconds | None = None,
        reason: str = "",
        exit_when_drained: bool = False,
    ) -> runner_pb2.Runner:
        """Stops new work for a runner; its tasks finish, at most until `deadline`, or are released.

        Example:
            await client.admin.drain("local", reason="new kernel", deadline=60)
            await client.admin.undrain("local")
        """
        drain = runner_pb2.DrainRequest(
            mode=runner_pb2.DrainMode.Value(f"DRAIN_MODE_{mode.upper()}"),
            reason=reason,
            exit_when_drained=exit_when_drained,
        )
        if deadline is not None:
            drain.deadline.CopyFrom(to_timestamp(datetime.now(UTC) + to_timedelta(deadline)))
        request = runner_service_pb2.DrainRunnerRequest(name=runner_name(runner), drain=drain)
        return (await self._channels.call(self._runners.DrainRunner, request)).runner

    async def undrain(self, runner: str) -> runner_pb2.Runner:
        """Lets a runner accept work again. Repeating it is safe.

        Example:
            await client.admin.undrain("local")
        """
        request = runner_service_pb2.UndrainRunnerRequest(name=runner_name(runner))
        return (await self._channels.call(self._runners.UndrainRunner, request)).runner

    async def delete_runner(self, runner: str, *, force: bool = False) -> None:
        """Deletes a runner; `force` revokes the leases it still holds.

        Example:
            try:
                await client.admin.delete_runner("retired-host", force=True)
            except errors.NotFound:
                print("already deleted")
        """
        request = runner_service_pb2.DeleteRunnerRequest(name=runner_name(runner), force=force)
        await self._channels.call(self._runners.DeleteRunner, request)

    # Health

    async def system_status(self, timeout: float | None = None) -> doctor_pb.GetSystemStatusResponse:
        """Whether work can proceed: database, leader, standbys, runners and queue.

        Example:
            status = await client.admin.system_status()
            print(status.operational, status.queue.waiting_count)
        """
        request = doctor_pb.GetSystemStatusRequest()
        return await self._channels.call(self._health.GetSystemStatus, request, timeout)

    async def doctor(
        self, checks: Sequence[str] = (), *, repair: bool = False
    ) -> doctor_pb.RunDoctorResponse:
        """Checks the invariants, all or the named ones; `repair` fixes what can be fixed safely.

        Example:
            print((await client.admin.doctor()).healthy)
        """
        request = doctor_pb.RunDoctorRequest(checks=checks, repair=repair)
        return await self._channels.call(self._health.RunDoctor, request)

    def quarantines(self, tenant: str = "-") -> Stream[doctor_pb.Quarantine]:
        """Specs that are quarantined because they crashed too many runners.

        Example:
            async for quarantine in client.admin.quarantines():
                print(quarantine.name, quarantine.example_task)
        """
        request = doctor_pb.ListQuarantinesRequest(parent=tenant_name(tenant), page_size=PAGE_SIZE)
        return Stream(
            pages(self._channels, lambda: self._health.ListQuarantines, request, "quarantines", _identity)
        )

    async def release_quarantine(self, name: str) -> None:
        """Lets a quarantined spec run again. Repeating it is safe.

        Example:
            async for quarantine in client.admin.quarantines():
                await client.admin.release_quarantine(quarantine.name)
        """
        await self._channels.call(
            self._health.ReleaseQuarantine, doctor_pb.ReleaseQuarantineRequest(name=name)
        )

    # Webhooks

    async def webhook_secret(self, tenant: str = "", *, rotate: bool = False) -> str:
        """The secret that signs the webhooks of a tenant; `rotate` makes a new one.

        Example:
            secret = await client.admin.webhook_secret()
            assert secret.startswith("whsec_")
        """
        request = doctor_pb.GetWebhookSecretRequest(
            parent=tenant_name(tenant or await self._channels.tenant()), rotate=rotate
        )
        return (await self._channels.call(self._health.GetWebhookSecret, request)).secret

    def webhook_deliveries(self, tenant: str = "") -> Stream[doctor_pb.WebhookDelivery]:
        """The webhook calls of a tenant that are not delivered yet, oldest first; "-" is all tenants.

        A call that was given up is an audit event, webhook.given_up.

        Example:
            async for delivery in client.admin.webhook_deliveries():
                print(delivery.task, delivery.attempt_count, delivery.last_error)
        """

        async def first() -> AsyncGenerator[Sequence[doctor_pb.WebhookDelivery]]:
            request = doctor_pb.ListWebhookDeliveriesRequest(
                parent=tenant_name(tenant or await self._channels.tenant()), page_size=PAGE_SIZE
            )
            return pages(
                self._channels, lambda: self._health.ListWebhookDeliveries, request, "deliveries", _identity
            )

        return Stream(deferred(first))

    # Calling

    @property
    def _tenants(self) -> TenantServiceAsyncStub:
        return self._channels.stub("admin", TenantServiceStub)

    @property
    def _keys(self) -> ApiKeyServiceAsyncStub:
        return self._channels.stub("admin", ApiKeyServiceStub)

    @property
    def _types(self) -> TaskTypeServiceAsyncStub:
        return self._channels.stub("admin", TaskTypeServiceStub)

    @property
    def _runners(self) -> RunnerServiceAsyncStub:
        return self._channels.stub("admin", RunnerServiceStub)

    @property
    def _health(self) -> AdminServiceAsyncStub:
        return self._channels.stub("admin", AdminServiceStub)

    async def _type_name(self, task_type: str) -> str:
        if task_type.startswith("tenants/"):
            return task_type
        return task_type_name(await self._channels.tenant(), task_type)
