"""A valid request of every RPC of taskdb and the scheduler, for the objects that a test names."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pool, duration_pb2, field_mask_pb2, struct_pb2
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from taskyard.compat.v1 import global_task_service_pb2 as G
from taskyard.v1 import admin_service_pb2 as A
from taskyard.v1 import (
    api_key_pb2,
    checkpoint_pb2,
    common_pb2,
    lease_pb2,
    limit_pb2,
    log_pb2,
    runner_pb2,
    schedule_pb2,
    task_pb2,
    task_type_pb2,
    tenant_pb2,
)
from taskyard.v1 import api_key_service_pb2 as K
from taskyard.v1 import embedded_service_pb2 as B
from taskyard.v1 import entity_service_pb2 as Q
from taskyard.v1 import explain_service_pb2 as E
from taskyard.v1 import group_service_pb2 as GR
from taskyard.v1 import lease_service_pb2 as L
from taskyard.v1 import limit_service_pb2 as I
from taskyard.v1 import runner_link_service_pb2 as N
from taskyard.v1 import runner_service_pb2 as R
from taskyard.v1 import schedule_service_pb2 as H
from taskyard.v1 import session_service_pb2 as O
from taskyard.v1 import task_service_pb2 as S
from taskyard.v1 import task_type_service_pb2 as Y
from taskyard.v1 import tenant_service_pb2 as T
from taskyard.v1 import work_service_pb2 as W

CHECKPOINT = b"a checkpoint"
HOLDER = "embedded-test"
SCHEMA = b'{"type": "object", "properties": {"n": {"type": "integer"}}}'


def _unused_id() -> str:
    return f"new-{uuid.uuid4().hex[:12]}"


@dataclass(frozen=True)
class Objects:
    """What requests refer to, by id. `task` waits, `external` is external, `lease` is of a claimed task."""

    tenant: str
    task: str = "task"
    external: str = "external"
    ended: str = "ended"
    task_type: str = "type"
    schedule: str = "schedule"
    group: str = "group"
    limit: str = "limit"
    api_key: str = "key"
    runner: str = "runner"
    runner_key: str = "key"
    lease: lease_pb2.LeaseRef = field(default_factory=lease_pb2.LeaseRef)
    secret: str = "ty_0123456789abcdef_0123456789abcdef"
    page_token: str = ""
    resume_token: str = ""
    instance_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    unused_id: Callable[[], str] = _unused_id

    @property
    def parent(self) -> str:
        return f"tenants/{self.tenant}"

    def name(self, task: str) -> str:
        return f"{self.parent}/tasks/{task}"

    @property
    def task_name(self) -> str:
        return self.name(self.task)

    @property
    def type_name(self) -> str:
        return f"{self.parent}/taskTypes/{self.task_type}"

    @property
    def limit_name(self) -> str:
        return f"{self.parent}/limits/{self.limit}"

    @property
    def schedule_name(self) -> str:
        return f"{self.parent}/schedules/{self.schedule}"

    @property
    def group_name(self) -> str:
        return f"{self.parent}/groups/{self.group}"

    @property
    def runner_name(self) -> str:
        return f"runners/{self.runner}"


def struct(**members: Any) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(members)
    return made


def seconds(count: int) -> duration_pb2.Duration:
    return duration_pb2.Duration(seconds=count)


def new_task(o: Objects, *, callback: str = "", **spec: Any) -> task_pb2.Task:
    """A command with a label, a payload and annotations, child of `o.task`."""
    command = task_pb2.CommandExecution(program="true", args=["a"])
    spec.setdefault("execution", task_pb2.Execution(command=command))
    task = task_pb2.Task(spec=task_pb2.TaskSpec(**spec))
    task.spec.payload.json.update({"n": 1})
    task.metadata.labels["team"] = "a"
    task.metadata.annotations.update({"note": "a"})
    task.metadata.parent_task = o.task_name
    if callback:
        task.spec.callback.url = callback
    return task


def create_task(o: Objects, **spec: Any) -> S.CreateTaskRequest:
    return S.CreateTaskRequest(parent=o.parent, task=new_task(o, **spec), task_id=o.unused_id())


def registration(**fields: Any) -> runner_pb2.RunnerRegistration:
    kinds = [runner_pb2.EXECUTION_KIND_COMMAND]
    return runner_pb2.RunnerRegistration(task_types=["*"], execution_kinds=kinds, capacity=2, **fields)


def _update_task(o: Objects) -> S.UpdateTaskRequest:
    task = task_pb2.Task(name=o.task_name)
    task.metadata.labels["team"] = "b"
    return S.UpdateTaskRequest(
        task=task, update_mask=field_mask_pb2.FieldMask(paths=["metadata.labels"]), request_id=o.unused_id()
    )


def _task_type() -> task_type_pb2.TaskType:
    return task_type_pb2.TaskType(
        description="a",
        payload_schema=SCHEMA,
        execution=task_pb2.Execution(command=task_pb2.CommandExecution(program="true")),
        allow_execution_override=True,
    )


def _update_limit(o: Objects) -> I.UpdateLimitRequest:
    made = limit_pb2.Limit(name=o.limit_name, description="b")
    return I.UpdateLimitRequest(limit=made, update_mask=field_mask_pb2.FieldMask(paths=["description"]))


def _schedule() -> schedule_pb2.Schedule:
    command = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    template = task_pb2.Task(spec=task_pb2.TaskSpec(execution=command))
    return schedule_pb2.Schedule(template=template, cron=["0 0 1 1 *"], description="a")


def _update_schedule(o: Objects) -> H.UpdateScheduleRequest:
    made = schedule_pb2.Schedule(name=o.schedule_name, description="b")
    return H.UpdateScheduleRequest(schedule=made, update_mask=field_mask_pb2.FieldMask(paths=["description"]))


def _backfill(o: Objects) -> H.BackfillScheduleRequest:
    made = H.BackfillScheduleRequest(name=o.schedule_name)
    made.start_time.seconds, made.end_time.seconds = 1_700_000_000, 1_700_000_060
    return made


def _update_type(o: Objects) -> Y.UpdateTaskTypeRequest:
    made = task_type_pb2.TaskType(name=o.type_name, description="b")
    return Y.UpdateTaskTypeRequest(
        task_type=made, update_mask=field_mask_pb2.FieldMask(paths=["description"])
    )


def _tenant(name: str = "") -> tenant_pb2.Tenant:
    return tenant_pb2.Tenant(name=name, display_name="a", tier=tenant_pb2.TENANT_TIER_STANDARD)


def _update_tenant(o: Objects) -> T.UpdateTenantRequest:
    mask = field_mask_pb2.FieldMask(paths=["display_name"])
    return T.UpdateTenantRequest(tenant=_tenant(o.parent), update_mask=mask)


def _create_key(o: Objects) -> K.CreateApiKeyRequest:
    made = api_key_pb2.ApiKey(kind=api_key_pb2.PRINCIPAL_KIND_TENANT, tenant=o.tenant, description="a")
    return K.CreateApiKeyRequest(api_key=made)


def _update_runner(o: Objects) -> R.UpdateRunnerRequest:
    runner = runner_pb2.Runner(name=o.runner_name, admin_labels={"zone": "a"})
    return R.UpdateRunnerRequest(runner=runner, update_mask=field_mask_pb2.FieldMask(paths=["admin_labels"]))


def _drain(o: Objects) -> R.DrainRunnerRequest:
    drain = runner_pb2.DrainRequest(mode=runner_pb2.DRAIN_MODE_FINISH, reason="a")
    return R.DrainRunnerRequest(name=o.runner_name, drain=drain)


def report(o: Objects, **outcome: Any) -> lease_pb2.RunReport:
    """A report of progress unless an outcome is given."""
    outcome = outcome or {"progress": common_pb2.Progress(percent=1, message="a")}
    return lease_pb2.RunReport(lease=o.lease, details=struct(a=1), **outcome)


def _short_runs(o: Objects) -> lease_pb2.ShortRuns:
    lease = o.lease
    return lease_pb2.ShortRuns(
        first_seq=1,
        tasks=[lease.task],
        generations=[lease.generation],
        lease_ids=[lease.lease_id],
        start_times=[1],
        end_times=[1],
    )


def log_batch(o: Objects) -> lease_pb2.LogBatch:
    entries = [log_pb2.LogEntry(sequence=1, message="a", level=log_pb2.LOG_LEVEL_INFO)]
    return lease_pb2.LogBatch(lease=o.lease, entries=entries)


def chunk(o: Objects) -> checkpoint_pb2.CheckpointChunk:
    header = checkpoint_pb2.CheckpointHeader(
        task=o.lease.task,
        generation=o.lease.generation,
        lease_id=o.lease.lease_id,
        sequence=1,
        size_bytes=len(CHECKPOINT),
        sha256=hashlib.sha256(CHECKPOINT).digest(),
    )
    return checkpoint_pb2.CheckpointChunk(header=header, data=CHECKPOINT, last=True)


def hello(o: Objects) -> N.ConnectRequest:
    said = N.Hello(
        runner_id=o.runner,
        instance_id=o.instance_id,
        takeover=True,
        protocol_version=1,
        registration=registration(),
        free=N.Capacity(tasks=2),
    )
    return N.ConnectRequest(hello=said)


def _claim(o: Objects) -> L.ClaimForRunnersRequest:
    lane = L.LaneClaim(lane=L.LaneKey(class_id=1, priority=10))
    tenant = L.TenantClaim(tenant=o.tenant, max_tasks=1, lanes=[lane])
    runner = L.RunnerClaim(runner_id=o.runner, max_tasks=1, lease_duration=seconds(15), tenants=[tenant])
    return L.ClaimForRunnersRequest(scheduler_id="s", request_id=o.unused_id(), runners=[runner])


def _open_session(o: Objects) -> O.OpenSessionRequest:
    return O.OpenSessionRequest(
        scheduler_id="s",
        runner_id=o.runner,
        key_id=o.runner_key,
        instance_id=o.instance_id,
        takeover=True,
        registration=registration(),
        lease_duration=seconds(15),
    )


def _renewal(o: Objects) -> O.SessionRenewal:
    return O.SessionRenewal(runner_id=o.runner, session_epoch=1, lease_duration=seconds(15), listed=[o.lease])


def _children(o: Objects) -> list[lease_pb2.ChildTask]:
    child = task_pb2.Task(
        spec=task_pb2.TaskSpec(
            execution=task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
        )
    )
    return [lease_pb2.ChildTask(task=child, key=o.unused_id())]


_TASK_SERVICE: Mapping[str, Callable[[Objects], Any]] = {
    "CreateTask": create_task,
    "BatchCreateTasks": lambda o: S.BatchCreateTasksRequest(
        parent=o.parent,
        requests=[create_task(o), create_task(o)],
        mode=common_pb2.BATCH_MODE_PER_ITEM,
    ),
    "GetTask": lambda o: S.GetTaskRequest(name=o.task_name, view=S.TASK_VIEW_FULL),
    "BatchGetTasks": lambda o: S.BatchGetTasksRequest(
        parent=o.parent, names=[o.task_name], allow_missing=False
    ),
    "ListTasks": lambda o: S.ListTasksRequest(parent=o.parent, page_size=2, page_token=o.page_token),
    "UpdateTask": _update_task,
    "DeleteTask": lambda o: S.DeleteTaskRequest(name=o.name(o.ended)),
    "CancelTask": lambda o: S.CancelTaskRequest(name=o.task_name, reason="a", grace_period=seconds(1)),
    "BatchCancelTasks": lambda o: S.BatchCancelTasksRequest(parent=o.parent, names=[o.task_name], reason="a"),
    "PauseTask": lambda o: S.PauseTaskRequest(name=o.task_name, reason="a", grace_period=seconds(1)),
    "ResumeTask": lambda o: S.ResumeTaskRequest(name=o.task_name),
    "RetryTask": lambda o: S.RetryTaskRequest(name=o.name(o.ended), request_id=o.unused_id()),
    "BatchRetryTasks": lambda o: S.BatchRetryTasksRequest(parent=o.parent, names=[o.name(o.ended)]),
    "BatchResetTasks": lambda o: S.BatchResetTasksRequest(parent=o.parent, names=[o.task_name], reason="a"),
    "ReportTaskStatus": lambda o: S.ReportTaskStatusRequest(
        name=o.name(o.external),
        phase=task_pb2.TASK_PHASE_RUNNING,
        details=struct(a=1),
        progress=common_pb2.Progress(percent=1),
        request_id=o.unused_id(),
    ),
    "WaitTask": lambda o: S.WaitTaskRequest(name=o.task_name, timeout=duration_pb2.Duration(nanos=1_000_000)),
    "CheckFence": lambda o: S.CheckFenceRequest(name=o.task_name, fencing_token="1.1"),
    "WatchTasks": lambda o: S.WatchTasksRequest(
        parent=o.parent, names=[o.task_name], snapshot=not o.resume_token, resume_token=o.resume_token
    ),
    "ListTaskRuns": lambda o: S.ListTaskRunsRequest(parent=o.task_name, page_size=2),
    "ListTaskLogs": lambda o: S.ListTaskLogsRequest(parent=o.task_name, page_size=2),
    "TailTaskLogs": lambda o: S.TailTaskLogsRequest(parent=o.task_name, tail_lines=2),
    "GetTaskSeries": lambda o: S.GetTaskSeriesRequest(parent=o.parent),
    "GetTaskStats": lambda o: S.GetTaskStatsRequest(parent=o.parent, group_by=[S.STATS_DIMENSION_TASK_TYPE]),
    "ListCheckpoints": lambda o: S.ListCheckpointsRequest(parent=o.task_name, page_size=2),
    "ReadCheckpoint": lambda o: S.ReadCheckpointRequest(name=f"{o.lease.task}/checkpoints/latest"),
    "ListAuditEvents": lambda o: S.ListAuditEventsRequest(parent=o.parent, page_size=2),
}

_SERVICES: Mapping[str, Mapping[str, Callable[[Objects], Any]]] = {
    "taskyard.v1.TaskService": _TASK_SERVICE,
    "taskyard.v1.TaskTypeService": {
        "CreateTaskType": lambda o: Y.CreateTaskTypeRequest(
            parent=o.parent, task_type_id=o.unused_id(), task_type=_task_type(), request_id=o.unused_id()
        ),
        "GetTaskType": lambda o: Y.GetTaskTypeRequest(name=o.type_name),
        "ListTaskTypes": lambda o: Y.ListTaskTypesRequest(parent=o.parent, page_size=2),
        "UpdateTaskType": _update_type,
        "DeleteTaskType": lambda o: Y.DeleteTaskTypeRequest(name=o.type_name),
        "ValidatePayload": lambda o: Y.ValidatePayloadRequest(
            name=o.type_name, payload=common_pb2.Payload(json=struct(n=1))
        ),
    },
    "taskyard.v1.EntityService": {
        "RegisterEntities": lambda o: Q.RegisterEntitiesRequest(
            parent=o.parent, entities=[task_pb2.EntityRef(type="planner", id="p1")]
        ),
        "ListEntities": lambda o: Q.ListEntitiesRequest(parent=f"{o.parent}/entityTypes/planner"),
        "DeleteEntity": lambda o: Q.DeleteEntityRequest(
            name=f"{o.parent}/entityTypes/planner/entities/p1", allow_missing=True
        ),
    },
    "taskyard.v1.EmbeddedService": {
        "CreateEmbeddedTask": lambda o: B.CreateEmbeddedTaskRequest(
            holder_id=HOLDER, request=create_task(o, execution=task_pb2.Execution())
        ),
        "ClaimEmbeddedTask": lambda o: B.ClaimEmbeddedTaskRequest(
            holder_id=HOLDER, name=o.task_name, request_id=o.unused_id()
        ),
        "RenewEmbeddedTasks": lambda o: B.RenewEmbeddedTasksRequest(holder_id=HOLDER, leases=[o.lease]),
        "ReportEmbeddedTasks": lambda o: B.ReportEmbeddedTasksRequest(holder_id=HOLDER, reports=[report(o)]),
        "AppendEmbeddedLogs": lambda o: B.AppendEmbeddedLogsRequest(holder_id=HOLDER, batches=[log_batch(o)]),
    },
    "taskyard.v1.LimitService": {
        "CreateLimit": lambda o: I.CreateLimitRequest(
            parent=o.parent,
            limit_id=o.unused_id()[:64],
            limit=limit_pb2.Limit(max_running=1, description="a"),
        ),
        "GetLimit": lambda o: I.GetLimitRequest(name=o.limit_name),
        "ListLimits": lambda o: I.ListLimitsRequest(parent=o.parent, page_size=2),
        "UpdateLimit": _update_limit,
        "DeleteLimit": lambda o: I.DeleteLimitRequest(name=o.limit_name),
    },
    "taskyard.v1.ScheduleService": {
        "CreateSchedule": lambda o: H.CreateScheduleRequest(
            parent=o.parent, schedule_id=o.unused_id()[:55], schedule=_schedule(), request_id=o.unused_id()
        ),
        "GetSchedule": lambda o: H.GetScheduleRequest(name=o.schedule_name),
        "ListSchedules": lambda o: H.ListSchedulesRequest(parent=o.parent, page_size=2),
        "UpdateSchedule": _update_schedule,
        "DeleteSchedule": lambda o: H.DeleteScheduleRequest(name=o.schedule_name),
        "PauseSchedule": lambda o: H.PauseScheduleRequest(name=o.schedule_name, note="a"),
        "ResumeSchedule": lambda o: H.ResumeScheduleRequest(name=o.schedule_name),
        "RunSchedule": lambda o: H.RunScheduleRequest(name=o.schedule_name, request_id=o.unused_id()),
        "BackfillSchedule": _backfill,
        "PreviewSchedule": lambda o: H.PreviewScheduleRequest(parent=o.parent, name=o.schedule_name, count=2),
    },
    "taskyard.v1.GroupService": {
        "CreateGroup": lambda o: GR.CreateGroupRequest(
            parent=o.parent, group_id=o.unused_id(), request_id=o.unused_id()
        ),
        "GetGroup": lambda o: GR.GetGroupRequest(name=o.group_name),
        "ListGroups": lambda o: GR.ListGroupsRequest(parent=o.parent, page_size=2),
        "CloseGroup": lambda o: GR.CloseGroupRequest(name=o.group_name),
        "CancelGroup": lambda o: GR.CancelGroupRequest(name=o.group_name, reason="a"),
        "WaitGroup": lambda o: GR.WaitGroupRequest(name=o.group_name, timeout=seconds(0)),
        "DeleteGroup": lambda o: GR.DeleteGroupRequest(name=o.group_name),
    },
    "taskyard.v1.TenantService": {
        "CreateTenant": lambda o: T.CreateTenantRequest(
            tenant_id=o.unused_id(), tenant=_tenant(), request_id=o.unused_id()
        ),
        "GetTenant": lambda o: T.GetTenantRequest(name=o.parent),
        "ListTenants": lambda o: T.ListTenantsRequest(page_size=2),
        "UpdateTenant": _update_tenant,
        "DeleteTenant": lambda o: T.DeleteTenantRequest(name=o.parent, force=True),
        "GetTenantUsage": lambda o: T.GetTenantUsageRequest(name=o.parent),
        "ListTenantShares": lambda o: T.ListTenantSharesRequest(),
    },
    "taskyard.v1.ApiKeyService": {
        "CreateApiKey": _create_key,
        "ListApiKeys": lambda o: K.ListApiKeysRequest(page_size=2),
        "WhoAmI": lambda o: K.WhoAmIRequest(),
        "CreateSignInCode": lambda o: K.CreateSignInCodeRequest(valid_for=seconds(60)),
        "RedeemSignInCode": lambda o: K.RedeemSignInCodeRequest(code=o.secret, valid_for=seconds(60)),
        "RevokeApiKey": lambda o: K.RevokeApiKeyRequest(name=f"apiKeys/{o.api_key}"),
    },
    "taskyard.v1.RunnerService": {
        "GetRunner": lambda o: R.GetRunnerRequest(name=o.runner_name),
        "ListRunners": lambda o: R.ListRunnersRequest(page_size=2),
        "UpdateRunner": _update_runner,
        "DrainRunner": _drain,
        "UndrainRunner": lambda o: R.UndrainRunnerRequest(name=o.runner_name),
        "DeleteRunner": lambda o: R.DeleteRunnerRequest(name=o.runner_name, force=True),
    },
    "taskyard.v1.AdminService": {
        "RunDoctor": lambda o: A.RunDoctorRequest(checks=["counters"]),
        "ListQuarantines": lambda o: A.ListQuarantinesRequest(parent=o.parent, page_size=2),
        "ReleaseQuarantine": lambda o: A.ReleaseQuarantineRequest(name=f"{o.parent}/quarantines/ab12"),
        "GetSystemStatus": lambda o: A.GetSystemStatusRequest(),
        "ListWebhookDeliveries": lambda o: A.ListWebhookDeliveriesRequest(parent=o.parent),
        "GetWebhookSecret": lambda o: A.GetWebhookSecretRequest(parent=o.parent),
    },
    "taskyard.v1.LeaseService": {
        "ClaimForRunners": _claim,
        "RenewLeases": lambda o: L.RenewLeasesRequest(
            runner_id=o.runner, leases=[o.lease], lease_duration=seconds(15)
        ),
        "ReportRuns": lambda o: L.ReportRunsRequest(
            reports=[L.HolderReport(runner_id=o.runner, report=report(o))]
        ),
        "CompleteRuns": lambda o: L.CompleteRunsRequest(
            holders=[L.HolderRuns(runner_id=o.runner, runs=_short_runs(o))]
        ),
        "AppendLogs": lambda o: L.AppendLogsRequest(runner_id=o.runner, batches=[log_batch(o)]),
        "WriteCheckpoint": lambda o: [L.WriteCheckpointRequest(runner_id=o.runner, chunk=chunk(o))],
        "ReadLeasedCheckpoint": lambda o: L.ReadLeasedCheckpointRequest(runner_id=o.runner, lease=o.lease),
        "CreateChildTasks": lambda o: L.CreateChildTasksRequest(
            runner_id=o.runner, lease=o.lease, children=_children(o)
        ),
        "ReadChildOutcomes": lambda o: L.ReadChildOutcomesRequest(
            runner_id=o.runner, lease=o.lease, tasks=[o.task_name]
        ),
        "WatchQueue": lambda o: L.WatchQueueRequest(scheduler_id="s"),
        "KeepCredit": lambda o: [L.KeepCreditRequest(scheduler_id="s", valid_for=seconds(3))],
        "ReadExplainFacts": lambda o: L.ReadExplainFactsRequest(tenant=o.tenant, task_id=o.task),
    },
    "taskyard.v1.SessionService": {
        "OpenSession": _open_session,
        "RenewSessions": lambda o: O.RenewSessionsRequest(scheduler_id="s", sessions=[_renewal(o)]),
        "CloseSession": lambda o: O.CloseSessionRequest(runner_id=o.runner, session_epoch=1),
        "RegisterWorker": lambda o: O.RegisterWorkerRequest(
            scheduler_id="s",
            worker_id=o.runner,
            key_id=o.runner_key,
            registration=registration(),
            duration=seconds(60),
        ),
        "VerifyApiKey": lambda o: O.VerifyApiKeyRequest(key=o.secret),
    },
    "taskyard.compat.v1.GlobalTaskService": {
        "CreateGlobalTask": lambda o: G.CreateGlobalTaskRequest(
            task_data=struct(a=1), task_type="a", task_status_data=struct(b=2), task_id=o.unused_id()
        ),
        "GetGlobalTask": lambda o: G.GetGlobalTaskRequest(task_id=o.external),
        "UpdateGlobalTask": lambda o: G.UpdateGlobalTaskRequest(task_id=o.external, task_data=struct(a=2)),
        "DeleteGlobalTask": lambda o: G.DeleteGlobalTaskRequest(task_id=o.external),
        "ListGlobalTasks": lambda o: G.ListGlobalTasksRequest(page_size=2),
        "PushGlobalTaskUpdate": lambda o: G.PushGlobalTaskUpdateRequest(
            task_id=o.external, status="in_progress", task_status_data=struct(b=3)
        ),
        "PushGlobalTaskUpdates": lambda o: G.PushGlobalTaskUpdatesRequest(
            updates=[G.PushGlobalTaskUpdateRequest(task_id=o.external, status="in_progress")]
        ),
    },
    "taskyard.v1.RunnerLinkService": {
        "Connect": lambda o: [hello(o)],
        "DownloadCheckpoint": lambda o: N.DownloadCheckpointRequest(runner_id=o.runner, lease=o.lease),
        "SubmitChildTasks": lambda o: N.SubmitChildTasksRequest(
            runner_id=o.runner, lease=o.lease, children=_children(o)
        ),
        "FetchChildOutcomes": lambda o: N.FetchChildOutcomesRequest(
            runner_id=o.runner, lease=o.lease, tasks=[o.task_name]
        ),
    },
    "taskyard.v1.WorkService": {
        "ClaimTasks": lambda o: W.ClaimTasksRequest(
            worker_id=o.runner, request_id=o.unused_id(), registration=registration(), max_tasks=1
        ),
        "RenewWork": lambda o: W.RenewWorkRequest(worker_id=o.runner, leases=[o.lease]),
        "ReportWork": lambda o: W.ReportWorkRequest(worker_id=o.runner, reports=[report(o)]),
        "AppendWorkLogs": lambda o: W.AppendWorkLogsRequest(worker_id=o.runner, batches=[log_batch(o)]),
        "WriteWorkCheckpoint": lambda o: [W.WriteWorkCheckpointRequest(worker_id=o.runner, chunk=chunk(o))],
        "ReadWorkCheckpoint": lambda o: W.ReadWorkCheckpointRequest(worker_id=o.runner, lease=o.lease),
    },
    "taskyard.v1.ExplainService": {
        "ExplainTask": lambda o: E.ExplainTaskRequest(parent=o.parent, name=o.task_name),
    },
}

REQUESTS: Mapping[str, Callable[[Objects], Any]] = {
    f"/{service}/{rpc}": make for service, rpcs in _SERVICES.items() for rpc, make in rpcs.items()
}


def messages_of(path: str, objects: Objects) -> list[Message]:
    """The messages of a valid call: one, or those of a client's stream."""
    made = REQUESTS[path](objects)
    return made if isinstance(made, list) else [made]


def method_of(path: str) -> MethodDescriptor:
    """The descriptor of an RPC."""
    _, service, name = path.split("/")
    return descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
