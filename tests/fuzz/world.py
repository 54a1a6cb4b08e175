"""What a fuzzed suite is known to have: tenants, keys, and the names and tokens found in its answers."""

from __future__ import annotations

import random
import uuid
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from taskyard.v1 import api_key_pb2, lease_pb2, task_pb2, tenant_pb2
from taskyard.v1 import api_key_service_pb2 as K
from taskyard.v1 import tenant_service_pb2 as T
from taskyard_kit.auth import Kind
from tests.fuzz.service import Service
from tests.harness.rpc_requests import Objects

TENANTS = ("fuzz", "fuzz2")
WORKERS = ("worker-1", "worker-2")
RUNNERS = ("runner-1", "runner-2")
UNLIMITED = {"max_concurrent_tasks": 0, "max_queue_depth": 0, "rate_limit_per_sec": 0}
_KEPT = 200
_MASKS = (
    "metadata.labels",
    "spec.priority",
    "spec",
    "*",
    "status",
    "display_name",
    "description",
    "quota",
    "a.b",
)
_POOLS = {"TaskType": "types", "Schedule": "schedules", "Group": "groups", "Limit": "limits"}
_CHECKS = ("counters", "slot-without-head", "webhooks", "jobs", "loops", "seals", "nothing")


@dataclass
class World:
    """`keys` by kind and tenant; `receiver` is the URL of callbacks."""

    service: Service
    receiver: str = ""
    keys: dict[tuple[Kind, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    _pools: dict[tuple[str, str], deque[Any]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_KEPT))
    )
    _own_keys: set[str] = field(default_factory=set)

    async def prepare(self) -> None:
        """Make the tenants and a key of each kind of principal."""
        for tenant in TENANTS:
            await add_tenant(self.service, tenant)
            self.keys[Kind.TENANT, tenant].append(await self._key(tenant=tenant))
            self.keys[Kind.TENANT, tenant].append(await self._key(tenant=tenant, read_only=True))
            scope = api_key_pb2.RunnerScope(tenants=TENANTS)
            key = await self._key(kind=api_key_pb2.PRINCIPAL_KIND_RUNNER, runner_scope=scope)
            self.keys[Kind.RUNNER, tenant].append(key)
            self.keys[Kind.ADMIN, tenant].append(self.service.admin_key)

    async def _key(self, **fields: Any) -> str:
        made = await add_key(self.service, **fields)
        self._own_keys.add(made.api_key.name)
        return made.secret

    def objects(self, rng: random.Random, path: str) -> Objects:
        """Some of what exists for a request of this RPC."""
        tenant = TENANTS[0] if rng.random() < 0.8 else TENANTS[1]
        pool, is_work = self._pools, "WorkService" in path or "RunnerLink" in path
        lease, runner = lease_pb2.LeaseRef(task=f"tenants/{tenant}/tasks/none", generation=1), ""
        if found := pool[tenant, "leases"]:
            runner, lease = rng.choice(found)
        if "RunnerService" in path or not runner:
            runner = rng.choice(WORKERS if is_work else RUNNERS)

        def pick(kind: str) -> str:
            found: str = rng.choice(pool[tenant, kind] or ("none",))
            return found

        if path.endswith(("UpdateTenant", "DeleteTenant")):
            tenant = rng.choice(pool["", "tenants"] or ("none",))
        has_token = rng.random() < 0.3
        return Objects(
            tenant=tenant,
            task=pick("tasks"),
            external=pick("external"),
            ended=pick("ended"),
            task_type=pick("types"),
            schedule=pick("schedules"),
            group=pick("groups"),
            limit=pick("limits"),
            api_key=pick("keys"),
            runner=runner,
            lease=lease,
            page_token=rng.choice(pool["", path] or ("",)) if has_token else "",
            resume_token=rng.choice(pool["", "resume_token"] or ("",)) if has_token else "",
            unused_id=lambda: f"f-{uuid.UUID(int=rng.getrandbits(128)).hex[:12]}",
        )

    def texts(self, name: str) -> Sequence[str]:
        """Texts that fit a field of this name."""
        tasks = [f"tenants/fuzz/tasks/{one}" for one in list(self._pools["fuzz", "tasks"])[:20]]
        types = list(self._pools["fuzz", "types"])[:5]
        match name:
            case "name" | "parent_task" | "task" | "names":
                return tasks
            case "parent":
                return ("tenants/fuzz", "tenants/fuzz2", "tenants/-", *tasks[:2])
            case "task_id" | "id":
                return [one.rpartition("/")[2] for one in tasks[:5]]
            case "task_type" | "task_types":
                return (*types, "*", "untyped")
            case "runner_id" | "runner_ids" | "worker_id":
                return RUNNERS + WORKERS
            case "tenant" | "tenants":
                return TENANTS
            case "page_token":
                return [token for (_, key), kept in self._pools.items() if key[:1] == "/" for token in kept][
                    :9
                ]
            case "resume_token":
                return list(self._pools["", "resume_token"])
            case "url":
                return (self.receiver, "http://127.0.0.1:1/")
            case "group" | "group_id":
                return ("g", "h")
            case "slot":
                return ("s", "t")
            case "paths":
                return _MASKS
            case "checks":
                return _CHECKS
            case _:
                return ()

    def learn(self, path: str, response: Any, worker: str = "", tenant: str = "") -> None:
        """Remember the names and tokens of an answer to a request of this worker or tenant."""
        if path.endswith("/CreateGlobalTask"):
            self._pools[tenant, "external"].append(response.task_id)
        for part in _parts(response):
            self._learn(part, worker)
        for token in ("next_page_token", "resume_token"):
            if value := getattr(response, token, ""):
                self._pools["", path if token == "next_page_token" else token].append(value)

    def _learn(self, part: Any, worker: str) -> None:
        match part.DESCRIPTOR.name:
            case "Task":
                self._learn_task(part)
            case "TaskType" | "Schedule" | "Group" | "Limit" as kind if part.name.startswith("tenants/"):
                self._pools[part.name.split("/")[1], _POOLS[kind]].append(part.name.rpartition("/")[2])
            case "ApiKey" if part.name not in self._own_keys and part.tenant in TENANTS:
                self._pools[part.tenant, "keys"].append(part.name.removeprefix("apiKeys/"))
            case "Tenant" if part.name.startswith("tenants/f-"):
                self._pools["", "tenants"].append(part.name.removeprefix("tenants/"))
            case "Assignment":
                tenant = part.lease.task.split("/")[1]
                self._pools[tenant, "leases"].append((worker, part.lease))

    def _learn_task(self, task: task_pb2.Task) -> None:
        name = task.name.split("/")
        if len(name) != 4 or name[1] not in TENANTS:
            return
        kind = "tasks"
        if task.status.phase >= task_pb2.TASK_PHASE_SUCCEEDED:
            kind = "ended"
        elif task.spec.execution.HasField("external"):
            kind = "external"
        self._pools[name[1], kind].append(name[3])


def _parts(message: Message, depth: int = 3) -> list[Message]:
    found = [message]
    if depth and message.DESCRIPTOR.name != "Task":
        for field_, value in message.ListFields():
            if field_.message_type is None or field_.message_type.GetOptions().map_entry:
                continue
            for inner in list(value)[:5] if field_.is_repeated else [value]:
                found += _parts(inner, depth - 1)
    return found


async def add_tenant(service: Service, tenant: str) -> None:
    """A tenant without limits."""
    made = tenant_pb2.Tenant(display_name=tenant, tier=tenant_pb2.TENANT_TIER_ENTERPRISE)
    for limit, value in UNLIMITED.items():
        setattr(made.quota, limit, value)
    request = T.CreateTenantRequest(tenant_id=tenant, tenant=made)
    await service.call("/taskyard.v1.TenantService/CreateTenant", request, service.admin_key)


async def add_key(service: Service, **fields: Any) -> K.CreateApiKeyResponse:
    """A key; of a tenant unless a kind is given."""
    fields.setdefault("kind", api_key_pb2.PRINCIPAL_KIND_TENANT)
    request = K.CreateApiKeyRequest(api_key=api_key_pb2.ApiKey(**fields))
    response: K.CreateApiKeyResponse = await service.call(
        "/taskyard.v1.ApiKeyService/CreateApiKey", request, service.admin_key
    )
    return response
