"""No caller sees another tenant: every RPC returns NOT_FOUND for a foreign name in any field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.rpc.schedule_calls import schedule
from taskyard import errors
from taskyard.status import from_rpc_error, from_status
from taskyard.v1 import (
    api_key_pb2,
    common_pb2,
    group_service_pb2,
    limit_pb2,
    limit_service_pb2,
    schedule_service_pb2,
    task_pb2,
    task_service_pb2,
    task_type_service_pb2,
    tenant_service_pb2,
)
from taskyard.v1 import api_key_service_pb2 as keys_pb2
from taskyard.v1.task_type_pb2 import TaskType
from taskyard_taskdb.access_policy import POLICIES
from taskyard_taskdb.storage.tenant import api_keys

M = limit_service_pb2
S, Y, T, C = task_service_pb2, task_type_service_pb2, tenant_service_pb2, schedule_service_pb2
G = group_service_pb2
OWN, FOREIGN = "tenants/default", "tenants/other"
TASK, TYPE, SCHEDULE = f"{OWN}/tasks/t1", f"{OWN}/taskTypes/y1", f"{OWN}/schedules/c1"
GROUP = f"{OWN}/groups/g1"
LIMIT = f"{OWN}/limits/l1"


def update_task() -> Message:
    request = S.UpdateTaskRequest()
    request.task.name = TASK
    request.task.spec.priority = 3
    return request


def create_task() -> S.CreateTaskRequest:
    request = new_task(OWN)
    request.task.metadata.parent_task = TASK
    return request


def batch_create() -> Message:
    return S.BatchCreateTasksRequest(
        parent=OWN, requests=[new_task(OWN), create_task()], mode=common_pb2.BATCH_MODE_ATOMIC
    )


def update_type() -> Message:
    request = Y.UpdateTaskTypeRequest(allow_missing=True)
    request.task_type.name = TYPE
    request.task_type.priority = 3
    return request


def update_schedule() -> Message:
    request = C.UpdateScheduleRequest(allow_missing=True, schedule=schedule(every=3600))
    request.schedule.name = SCHEDULE
    return request


def backfill() -> Message:
    request = C.BackfillScheduleRequest(name=SCHEDULE)
    request.start_time.seconds, request.end_time.seconds = 1_700_000_000, 1_700_000_060
    return request


def create_key() -> Message:
    request = keys_pb2.CreateApiKeyRequest()
    request.api_key.kind = api_key_pb2.PRINCIPAL_KIND_TENANT
    request.api_key.tenant = "default"
    return request


# A request of each RPC that a tenant may call; every name in it is replaced in turn.
REQUESTS: dict[str, Callable[[], Message]] = {
    "CreateTask": create_task,
    "BatchCreateTasks": batch_create,
    "GetTask": lambda: S.GetTaskRequest(name=TASK),
    "BatchGetTasks": lambda: S.BatchGetTasksRequest(parent=OWN, names=[TASK]),
    "ListTasks": lambda: S.ListTasksRequest(parent=OWN),
    "UpdateTask": update_task,
    "DeleteTask": lambda: S.DeleteTaskRequest(name=TASK),
    "CancelTask": lambda: S.CancelTaskRequest(name=TASK),
    "BatchCancelTasks": lambda: S.BatchCancelTasksRequest(parent=OWN, names=[TASK]),
    "PauseTask": lambda: S.PauseTaskRequest(name=TASK),
    "ResumeTask": lambda: S.ResumeTaskRequest(name=TASK),
    "RetryTask": lambda: S.RetryTaskRequest(name=TASK),
    "BatchRetryTasks": lambda: S.BatchRetryTasksRequest(parent=OWN, names=[TASK]),
    "BatchResetTasks": lambda: S.BatchResetTasksRequest(parent=OWN, names=[TASK], reason="a"),
    "ReportTaskStatus": lambda: S.ReportTaskStatusRequest(name=TASK, phase=task_pb2.TASK_PHASE_RUNNING),
    "WaitTask": lambda: S.WaitTaskRequest(name=TASK),
    "CheckFence": lambda: S.CheckFenceRequest(name=TASK, fencing_token="1.1"),
    "WatchTasks": lambda: S.WatchTasksRequest(parent=OWN, names=[TASK]),
    "ListTaskRuns": lambda: S.ListTaskRunsRequest(parent=TASK),
    "ListTaskLogs": lambda: S.ListTaskLogsRequest(parent=TASK),
    "TailTaskLogs": lambda: S.TailTaskLogsRequest(parent=TASK),
    "GetTaskSeries": lambda: S.GetTaskSeriesRequest(parent=OWN),
    "GetTaskStats": lambda: S.GetTaskStatsRequest(parent=OWN),
    "ListCheckpoints": lambda: S.ListCheckpointsRequest(parent=TASK),
    "ReadCheckpoint": lambda: S.ReadCheckpointRequest(name=f"{TASK}/checkpoints/1"),
    "ListAuditEvents": lambda: S.ListAuditEventsRequest(parent=OWN),
    "CreateTaskType": lambda: Y.CreateTaskTypeRequest(parent=OWN, task_type_id="y2", task_type=TaskType()),
    "GetTaskType": lambda: Y.GetTaskTypeRequest(name=TYPE),
    "ListTaskTypes": lambda: Y.ListTaskTypesRequest(parent=OWN),
    "UpdateTaskType": update_type,
    "DeleteTaskType": lambda: Y.DeleteTaskTypeRequest(name=TYPE),
    "ValidatePayload": lambda: Y.ValidatePayloadRequest(name=TYPE, payload=common_pb2.Payload(raw=b"{}")),
    "CreateLimit": lambda: M.CreateLimitRequest(
        parent=OWN, limit_id="l2", limit=limit_pb2.Limit(max_running=1)
    ),
    "GetLimit": lambda: M.GetLimitRequest(name=LIMIT),
    "ListLimits": lambda: M.ListLimitsRequest(parent=OWN),
    "UpdateLimit": lambda: M.UpdateLimitRequest(
        allow_missing=True, limit=limit_pb2.Limit(name=LIMIT, max_running=2)
    ),
    "DeleteLimit": lambda: M.DeleteLimitRequest(name=LIMIT),
    "CreateSchedule": lambda: C.CreateScheduleRequest(
        parent=OWN, schedule_id="c2", schedule=schedule(every=3600)
    ),
    "GetSchedule": lambda: C.GetScheduleRequest(name=SCHEDULE),
    "ListSchedules": lambda: C.ListSchedulesRequest(parent=OWN),
    "UpdateSchedule": update_schedule,
    "DeleteSchedule": lambda: C.DeleteScheduleRequest(name=SCHEDULE),
    "PauseSchedule": lambda: C.PauseScheduleRequest(name=SCHEDULE),
    "ResumeSchedule": lambda: C.ResumeScheduleRequest(name=SCHEDULE),
    "RunSchedule": lambda: C.RunScheduleRequest(name=SCHEDULE),
    "BackfillSchedule": backfill,
    "PreviewSchedule": lambda: C.PreviewScheduleRequest(parent=OWN, name=SCHEDULE),
    "CreateGroup": lambda: G.CreateGroupRequest(parent=OWN, group_id="g2"),
    "GetGroup": lambda: G.GetGroupRequest(name=GROUP),
    "ListGroups": lambda: G.ListGroupsRequest(parent=OWN),
    "CloseGroup": lambda: G.CloseGroupRequest(name=GROUP),
    "CancelGroup": lambda: G.CancelGroupRequest(name=GROUP),
    "WaitGroup": lambda: G.WaitGroupRequest(name=GROUP),
    "DeleteGroup": lambda: G.DeleteGroupRequest(name=GROUP),
    "GetTenant": lambda: T.GetTenantRequest(name=OWN),
    "GetTenantUsage": lambda: T.GetTenantUsageRequest(name=OWN),
    "CreateApiKey": create_key,
    "ListApiKeys": lambda: keys_pb2.ListApiKeysRequest(),
    "WhoAmI": lambda: keys_pb2.WhoAmIRequest(),
    "CreateSignInCode": lambda: keys_pb2.CreateSignInCodeRequest(),
    "ListTenantShares": lambda: T.ListTenantSharesRequest(),
    "RevokeApiKey": lambda: keys_pb2.RevokeApiKeyRequest(name="apiKeys/otherkey"),
}
# Their requests name nothing: what they list is the caller's by its key.
NAMELESS = {"ListApiKeys", "WhoAmI", "CreateSignInCode", "ListTenantShares"}
MAPS = ("labels", "headers")
SERVICES = {
    "taskyard.v1.TaskService": "tasks",
    "taskyard.v1.TaskTypeService": "task_types",
    "taskyard.v1.LimitService": "limits",
    "taskyard.v1.ScheduleService": "schedules",
    "taskyard.v1.GroupService": "groups",
    "taskyard.v1.TenantService": "tenants",
    "taskyard.v1.ApiKeyService": "api_keys",
}


def tenant_rpcs() -> dict[str, str]:
    """The RPCs of these services that a tenant's key may call, and the stub of each."""
    found = {}
    for method, policy in POLICIES.items():
        _, service, rpc = method.split("/")
        if service in SERVICES and any(kind.value == "tenant" for kind in policy.kinds):
            found[rpc] = SERVICES[service]
    return found


def names_in(message: Message, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts in a request that name something of a tenant."""
    for field, value in message.ListFields():
        items = list(enumerate(value)) if field.is_repeated else [(None, value)]
        if field.type == FieldDescriptor.TYPE_MESSAGE and field.name not in MAPS:
            for index, item in items:
                yield from names_in(item, (*path, (field.name, index)))
        elif field.type == FieldDescriptor.TYPE_STRING:
            for index, item in items:
                if item.startswith((OWN, "apiKeys/")) or (field.name == "tenant" and item == "default"):
                    yield (*path, (field.name, index))


def made_foreign(request: Message, path: tuple[Any, ...]) -> Message:
    """A copy in which one name is another tenant's."""
    copy = type(request)()
    copy.CopyFrom(request)
    target: Any = copy
    for name, index in path[:-1]:
        target = getattr(target, name) if index is None else getattr(target, name)[index]
    name, index = path[-1]
    value = getattr(target, name) if index is None else getattr(target, name)[index]
    foreign = "other" if value == "default" else value.replace(OWN, FOREIGN, 1)
    if index is None:
        setattr(target, name, foreign)
    else:
        getattr(target, name)[index] = foreign
    return copy


async def outcome_of(caller: Caller, stub: str, rpc: str, request: Message) -> errors.TaskyardError | Message:
    """The outcome of a call: its error, or the first message."""
    try:
        call = getattr(getattr(caller, stub), rpc)(request, timeout=20)
        if hasattr(call, "read"):
            first = await call.read()
            if first is grpc.aio.EOF:
                await call.code()
            call.cancel()
            return first  # type: ignore[no-any-return]
        return await call  # type: ignore[no-any-return]
    except grpc.RpcError as error:
        return from_rpc_error(error)
    except errors.TaskyardError as error:
        return error


@pytest.fixture
async def world(taskdb: RunningTaskDb, admin: Caller) -> Caller:
    """Both tenants have everything that is named, so that only visibility can refuse; acts for "default"."""
    await taskdb.add_tenant("other")
    for parent in (OWN, FOREIGN):
        await admin.tasks.CreateTask(new_task(parent, task_id="t1"))
        await admin.task_types.CreateTaskType(
            Y.CreateTaskTypeRequest(parent=parent, task_type_id="y1", task_type=TaskType())
        )
        await admin.limits.CreateLimit(
            M.CreateLimitRequest(parent=parent, limit_id="l1", limit=limit_pb2.Limit(max_running=1))
        )
        await admin.schedules.CreateSchedule(
            C.CreateScheduleRequest(parent=parent, schedule_id="c1", schedule=schedule(every=3600))
        )
        await admin.groups.CreateGroup(G.CreateGroupRequest(parent=parent, group_id="g1"))
    request = keys_pb2.CreateApiKeyRequest(api_key_id="otherkey")
    request.api_key.kind = api_key_pb2.PRINCIPAL_KIND_TENANT
    request.api_key.tenant = "other"
    await admin.api_keys.CreateApiKey(request)
    return await taskdb.caller(api_keys.TENANT, "default")


def test_every_rpc_of_tenants_is_tried() -> None:
    assert set(tenant_rpcs()) == set(REQUESTS)
    for rpc, make in REQUESTS.items():
        assert rpc in NAMELESS or list(names_in(make())), rpc


async def test_every_foreign_name_in_every_request_is_not_found(world: Caller, taskdb: RunningTaskDb) -> None:
    tables = ("tasks", "queue", "task_types", "schedules", "groups", "limits", "api_keys", "changes")
    before = [await taskdb.rows(f"SELECT * FROM {t} WHERE tenant_id = 'other' ORDER BY 1, 2") for t in tables]
    tried = 0
    for rpc, stub in tenant_rpcs().items():
        request = REQUESTS[rpc]()
        for path in names_in(request):
            foreign = made_foreign(request, path)
            found = await outcome_of(world, stub, rpc, foreign)
            tried += 1
            if isinstance(found, Message) and hasattr(found, "results"):
                found = from_status(found.results[0].status)
            # A batch that mixes tenants is refused for its form before anything is looked up.
            refused = isinstance(found, errors.NotFound) or (
                (len(path) > 1 or path[0][0] == "names") and isinstance(found, errors.FieldInvalid)
            )
            assert refused, f"{rpc} with {path} foreign: {found!r}"
    after = [await taskdb.rows(f"SELECT * FROM {t} WHERE tenant_id = 'other' ORDER BY 1, 2") for t in tables]
    assert after == before and tried >= 40


async def test_lists_over_all_tenants_show_a_tenant_its_own_only(world: Caller) -> None:
    listed = await world.tasks.ListTasks(S.ListTasksRequest(parent="tenants/-"))
    assert {task.name for task in listed.tasks} == {TASK}
    shown = await world.task_types.ListTaskTypes(Y.ListTaskTypesRequest(parent="tenants/-"))
    assert {made.name for made in shown.task_types} == {TYPE}
    scheduled = await world.schedules.ListSchedules(C.ListSchedulesRequest(parent="tenants/-"))
    assert {made.name for made in scheduled.schedules} == {SCHEDULE}
    grouped = await world.groups.ListGroups(G.ListGroupsRequest(parent="tenants/-"))
    assert {made.name for made in grouped.groups} == {GROUP}
    own = await world.api_keys.ListApiKeys(keys_pb2.ListApiKeysRequest())
    assert {key.tenant for key in own.api_keys} == {"default"}
