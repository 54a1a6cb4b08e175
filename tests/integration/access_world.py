"""Two tenants with one object of each kind, and a key of every kind of principal."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1 import api_key_pb2, lease_pb2, task_pb2
from taskyard.v1 import api_key_service_pb2 as K
from taskyard.v1 import task_service_pb2 as S
from taskyard.v1 import work_service_pb2 as W
from taskyard_kit.auth import Kind
from tests.fuzz.service import Service, bearer
from tests.fuzz.world import add_key, add_tenant
from tests.harness import any_rpc
from tests.harness.rpc_requests import Objects, messages_of, new_task, registration, seconds

OWN, FOREIGN, NOWHERE = "own", "foreign", "nowhere"
# In every text of the foreign tenant; nobody else may see it.
SECRET = "xyzzy-of-foreign"
TASKS = "/taskyard.v1.TaskService/"
RUNNER: dict[str, Any] = {"kind": api_key_pb2.PRINCIPAL_KIND_RUNNER}


@dataclass(frozen=True)
class Caller:
    """A kind of principal; `bound` if its key is for one tenant."""

    name: str
    key: str
    kind: Kind | None = None
    writes: bool = True
    bound: bool = False


@dataclass
class AccessWorld:
    """`objects` by owner; `callers` are all kinds of principals, those of tenants and runners of OWN."""

    service: Service
    callers: list[Caller] = field(default_factory=list)
    objects: dict[str, Objects] = field(default_factory=dict)
    # Keys for the tenant's worker, and for any runner of the tenant.
    worker_keys: dict[str, str] = field(default_factory=dict)
    any_runner_keys: dict[str, str] = field(default_factory=dict)

    async def call(self, caller: Caller, path: str, objects: Objects) -> any_rpc.Answer:
        return await self.send(caller, path, messages_of(path, objects), objects.tenant)

    async def send(self, caller: Caller, path: str, messages: Any, tenant: str) -> any_rpc.Answer:
        metadata = bearer(caller.key, tenant if ".compat." in path else "")
        channel: grpc.aio.Channel = self.service.channel(path)
        return await any_rpc.call(channel, path, messages, metadata)

    async def prepare(self) -> None:
        for tenant in (OWN, FOREIGN):
            await add_tenant(self.service, tenant)
            scope = api_key_pb2.RunnerScope(tenants=[tenant])
            self.any_runner_keys[tenant] = await self._key(runner_scope=scope, **RUNNER)
            scope.runner_id = f"worker-{tenant}"
            self.worker_keys[tenant] = await self._key(runner_scope=scope, **RUNNER)
            self.objects[tenant] = await self.fresh(tenant)
        self.objects[NOWHERE] = replace(
            self.objects[FOREIGN], tenant=NOWHERE, **_elsewhere(self.objects[FOREIGN])
        )
        await self._add_callers()

    async def _add_callers(self) -> None:
        revoked = await add_key(self.service, tenant=OWN)
        await self.service.call(
            "/taskyard.v1.ApiKeyService/RevokeApiKey",
            messages_of(
                "/taskyard.v1.ApiKeyService/RevokeApiKey",
                Objects(OWN, api_key=revoked.api_key.name.removeprefix("apiKeys/")),
            )[0],
            self.service.admin_key,
        )
        expired = await self._expired_key()
        self.callers = [
            Caller("tenant", await self._key(tenant=OWN), Kind.TENANT, bound=True),
            Caller("read-only", await self._key(tenant=OWN, read_only=True), Kind.TENANT, False, True),
            Caller("browser", await self._sign_in_key(), Kind.TENANT, False, True),
            Caller("runner", self.worker_keys[OWN], Kind.RUNNER, bound=True),
            Caller("any runner", self.any_runner_keys[OWN], Kind.RUNNER, bound=True),
            Caller("admin", self.service.admin_key, Kind.ADMIN),
            Caller("scheduler", await self._key(kind=api_key_pb2.PRINCIPAL_KIND_SCHEDULER), Kind.SCHEDULER),
            Caller("none", ""),
            Caller("unknown", "ty_0123456789abcdef_" + "0" * 64),
            Caller("revoked", revoked.secret),
            Caller("expired", expired),
        ]

    async def _sign_in_key(self) -> str:
        """What a session of the gateway holds after a sign-in by code, here with a read-only key."""
        service = "/taskyard.v1.ApiKeyService/"
        key = await self._key(tenant=OWN, read_only=True)
        code = await self.service.call(service + "CreateSignInCode", K.CreateSignInCodeRequest(), key)
        redeem = K.RedeemSignInCodeRequest(code=code.code)
        secret: str = (await self.service.call(service + "RedeemSignInCode", redeem, "")).secret
        return secret

    async def _expired_key(self) -> str:
        soon = Timestamp()
        soon.GetCurrentTime()
        soon.seconds += 1
        key = await self._key(tenant=OWN, expire_time=soon)
        async with asyncio.timeout(30):
            while (await self.call(Caller("", key), TASKS + "ListTasks", Objects(OWN))).served:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        return key

    async def _key(self, **fields: Any) -> str:
        return (await add_key(self.service, **fields)).secret

    async def fresh(self, tenant: str, *, leased: bool = True) -> Objects:
        """New objects of a tenant: tasks that wait, are external and have ended; a type and a key.

        With `leased` a new lease as well, else that of the tenant's first objects.
        """
        admin = self.service.admin_key
        description = SECRET if tenant == FOREIGN else "mine"
        made = await add_key(self.service, tenant=tenant, description=description)
        mark = uuid.uuid4().hex[:8]
        o = Objects(
            tenant,
            task=f"task-{mark}",
            external=f"external-{mark}",
            ended=f"ended-{mark}",
            task_type=f"type-{mark}",
            schedule=f"schedule-{mark}",
            group=f"group-{mark}",
            limit=f"limit-{mark}",
            api_key=made.api_key.name.removeprefix("apiKeys/"),
            secret=made.secret,
            runner=f"worker-{tenant}",
            runner_key=self.worker_keys[tenant].split("_")[1],
        )
        requests = [
            _request(o, o.ended, description),
            _request(o, o.external, description, execution=_external()),
        ]
        if leased:
            requests.append(_request(o, f"leased-{mark}", description, priority=1000))
        batch = S.BatchCreateTasksRequest(parent=o.parent, requests=requests)
        await self.service.call(TASKS + "BatchCreateTasks", batch, admin)
        await self.service.call(TASKS + "CancelTask", S.CancelTaskRequest(name=o.name(o.ended)), admin)
        o = replace(o, lease=await self._lease(o) if leased else self.objects[tenant].lease)
        waiting = S.BatchCreateTasksRequest(parent=o.parent, requests=[_request(o, o.task, description)])
        await self.service.call(TASKS + "BatchCreateTasks", waiting, admin)
        new_type: Any = messages_of("/taskyard.v1.TaskTypeService/CreateTaskType", o)[0]
        new_type.task_type_id, new_type.task_type.description = o.task_type, description
        await self.service.call("/taskyard.v1.TaskTypeService/CreateTaskType", new_type, admin)
        new_schedule: Any = messages_of("/taskyard.v1.ScheduleService/CreateSchedule", o)[0]
        new_schedule.schedule_id, new_schedule.schedule.description = o.schedule, description
        await self.service.call("/taskyard.v1.ScheduleService/CreateSchedule", new_schedule, admin)
        new_group: Any = messages_of("/taskyard.v1.GroupService/CreateGroup", o)[0]
        new_group.group_id = o.group
        await self.service.call("/taskyard.v1.GroupService/CreateGroup", new_group, admin)
        new_limit: Any = messages_of("/taskyard.v1.LimitService/CreateLimit", o)[0]
        new_limit.limit_id, new_limit.limit.description = o.limit, description
        await self.service.call("/taskyard.v1.LimitService/CreateLimit", new_limit, admin)
        return o

    async def _lease(self, o: Objects) -> lease_pb2.LeaseRef:
        request = W.ClaimTasksRequest(
            worker_id=o.runner,
            request_id=o.unused_id(),
            registration=registration(),
            lease_duration=seconds(3600),
            wait=seconds(20),
            max_tasks=1,
        )
        work = "/taskyard.v1.WorkService/"
        claimed = await self.service.call(work + "ClaimTasks", request, self.worker_keys[o.tenant])
        lease: lease_pb2.LeaseRef = claimed.assignments[0].lease
        claimer = Caller("worker", self.worker_keys[o.tenant])
        stored = await self.call(claimer, work + "WriteWorkCheckpoint", replace(o, lease=lease))
        assert stored.served, stored
        return lease


def _request(o: Objects, task_id: str, mark: str, **spec: Any) -> S.CreateTaskRequest:
    task = new_task(o, **spec)
    task.metadata.parent_task = ""
    task.metadata.labels["mark"] = mark
    task.metadata.annotations.update({"mark": mark})
    task.spec.payload.json.update({"mark": mark})
    return S.CreateTaskRequest(parent=o.parent, task=task, task_id=task_id)


def _external() -> task_pb2.Execution:
    return task_pb2.Execution(external=task_pb2.ExternalExecution())


def missing(o: Objects) -> Objects:
    """Objects of the same tenant that do not exist."""
    return replace(
        o,
        task="gone",
        external="gone",
        ended="gone",
        task_type="gone",
        schedule="gone",
        group="gone",
        limit="gone",
        **_elsewhere(o, o.tenant),
    )


def _elsewhere(o: Objects, tenant: str = NOWHERE) -> dict[str, Any]:
    lease = lease_pb2.LeaseRef(
        task=f"tenants/{tenant}/tasks/{'gone' if tenant != NOWHERE else o.lease.task.rpartition('/')[2]}",
        generation=o.lease.generation,
        lease_id=o.lease.lease_id,
    )
    return {"api_key": "0123456789abcdef", "runner": f"worker-{NOWHERE}", "lease": lease}
