"""Who may call each RPC of taskdb. The server does not start if an RPC is missing here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from taskyard_kit.auth import OPEN, Kind, Policy, allow

WRITE = "write"
# The largest request, that of BatchCreateTasks.
MAX_BATCH_BYTES = 16 * 1024 * 1024
_USERS = (Kind.TENANT, Kind.ADMIN)

_READ = allow(*_USERS)
# Lists, statistics and audit: one tenant uses a part of the connections for queries.
_QUERY = allow(*_USERS, heavy=True)
_WRITE = allow(*_USERS, scope=WRITE)
_ADMIN = allow(Kind.ADMIN)
_INTERNAL = allow(Kind.SCHEDULER)
# The scheduler has validated the messages of runners; these handlers check what its own defects could break.
_INTERNAL_HOT = allow(Kind.SCHEDULER, validate=False, wellformed=False)
# Lines of a log are stored as the task has written them.
_INTERNAL_LOGS = allow(Kind.SCHEDULER, wellformed=False)
# The handler validates the request itself: in slices, per item, or with its own error reasons.
_OWN_VALIDATION = allow(*_USERS, scope=WRITE, validate=False)
_BATCH = allow(*_USERS, scope=WRITE, validate=False, deadline=timedelta(minutes=2), heavy=True)


def _table(service: str, rpcs: Mapping[str, Policy]) -> dict[str, Policy]:
    return {f"/{service}/{name}": policy for name, policy in rpcs.items()}


POLICIES: Mapping[str, Policy] = {
    **_table(
        "taskyard.v1.TaskService",
        {
            "CreateTask": _OWN_VALIDATION,
            "BatchCreateTasks": allow(
                *_USERS,
                scope=WRITE,
                validate=False,
                items="requests",
                deadline=timedelta(minutes=2),
                heavy=True,
                max_bytes=MAX_BATCH_BYTES,
            ),
            # The scheduler reads tasks to explain them.
            "GetTask": allow(*_USERS, Kind.SCHEDULER),
            "BatchGetTasks": allow(*_USERS, validate=False, heavy=True),
            "ListTasks": _QUERY,
            "UpdateTask": _OWN_VALIDATION,
            "DeleteTask": _WRITE,
            "CancelTask": _WRITE,
            "BatchCancelTasks": _BATCH,
            "PauseTask": _WRITE,
            "ResumeTask": _WRITE,
            "RetryTask": _WRITE,
            "BatchRetryTasks": _BATCH,
            "BatchResetTasks": _BATCH,
            "ReportTaskStatus": _WRITE,
            "WaitTask": allow(*_USERS, waits=True),
            # A workload checks its own fence with its runner's key.
            "CheckFence": allow(*Kind),
            "WatchTasks": _READ,
            "ListTaskRuns": _READ,
            "ListTaskLogs": _QUERY,
            "TailTaskLogs": _READ,
            "GetTaskStats": _QUERY,
            "GetTaskSeries": _QUERY,
            "ListCheckpoints": _READ,
            "ReadCheckpoint": _READ,
            "ListAuditEvents": _QUERY,
        },
    ),
    **_table(
        "taskyard.v1.TaskTypeService",
        {
            "CreateTaskType": _WRITE,
            "GetTaskType": _READ,
            "ListTaskTypes": _READ,
            "UpdateTaskType": _WRITE,
            "DeleteTaskType": _WRITE,
            "ValidatePayload": _READ,
        },
    ),
    **_table(
        "taskyard.v1.EntityService",
        {"RegisterEntities": _WRITE, "ListEntities": _READ, "DeleteEntity": _WRITE},
    ),
    **_table(
        "taskyard.v1.EmbeddedService",
        {
            # The handler of CreateTask validates the task.
            "CreateEmbeddedTask": _OWN_VALIDATION,
            "ClaimEmbeddedTask": _WRITE,
            "RenewEmbeddedTasks": _WRITE,
            "ReportEmbeddedTasks": _WRITE,
            # Lines of a log are stored as the task has written them.
            "AppendEmbeddedLogs": allow(*_USERS, scope=WRITE, wellformed=False),
        },
    ),
    **_table(
        "taskyard.v1.LimitService",
        {
            "CreateLimit": _WRITE,
            "GetLimit": _READ,
            "ListLimits": _READ,
            "UpdateLimit": _WRITE,
            "DeleteLimit": _WRITE,
        },
    ),
    **_table(
        "taskyard.v1.ScheduleService",
        {
            "CreateSchedule": _WRITE,
            "GetSchedule": _READ,
            "ListSchedules": _READ,
            "UpdateSchedule": _WRITE,
            "DeleteSchedule": _WRITE,
            "PauseSchedule": _WRITE,
            "ResumeSchedule": _WRITE,
            "RunSchedule": _WRITE,
            "BackfillSchedule": _WRITE,
            "PreviewSchedule": _READ,
        },
    ),
    **_table(
        "taskyard.v1.GroupService",
        {
            "CreateGroup": _WRITE,
            "GetGroup": _READ,
            "ListGroups": _READ,
            "CloseGroup": _WRITE,
            "CancelGroup": _WRITE,
            "WaitGroup": allow(*_USERS, waits=True),
            "DeleteGroup": _WRITE,
        },
    ),
    **_table(
        "taskyard.v1.TenantService",
        {
            "CreateTenant": _ADMIN,
            "GetTenant": _READ,
            "ListTenants": _ADMIN,
            "UpdateTenant": _ADMIN,
            "DeleteTenant": _ADMIN,
            "GetTenantUsage": _READ,
            "ListTenantShares": _READ,
        },
    ),
    **_table(
        "taskyard.v1.ApiKeyService",
        {
            "CreateApiKey": _WRITE,
            "ListApiKeys": _READ,
            "RevokeApiKey": _WRITE,
            "WhoAmI": allow(*Kind),
            "CreateSignInCode": _READ,
            # The code is the credential.
            "RedeemSignInCode": OPEN,
        },
    ),
    **_table(
        "taskyard.v1.RunnerService",
        {
            "GetRunner": _ADMIN,
            "ListRunners": _ADMIN,
            "UpdateRunner": _ADMIN,
            "DrainRunner": _ADMIN,
            "UndrainRunner": _ADMIN,
            "DeleteRunner": _ADMIN,
        },
    ),
    **_table(
        "taskyard.v1.AdminService",
        {
            "GetSystemStatus": _ADMIN,
            "RunDoctor": allow(Kind.ADMIN, deadline=timedelta(minutes=30)),
            "ListQuarantines": _ADMIN,
            "ReleaseQuarantine": _ADMIN,
            "GetWebhookSecret": _WRITE,
            "ListWebhookDeliveries": _READ,
        },
    ),
    **_table(
        "taskyard.v1.LeaseService",
        {
            "ClaimForRunners": _INTERNAL_HOT,
            "RenewLeases": _INTERNAL_HOT,
            "ReportRuns": _INTERNAL_HOT,
            "CompleteRuns": _INTERNAL_HOT,
            "AppendLogs": _INTERNAL_LOGS,
            "WriteCheckpoint": _INTERNAL,
            "ReadLeasedCheckpoint": _INTERNAL,
            # Each child is validated as a create is.
            "CreateChildTasks": allow(Kind.SCHEDULER, validate=False),
            "ReadChildOutcomes": _INTERNAL,
            "WatchQueue": _INTERNAL,
            "KeepCredit": _INTERNAL,
            "ReadExplainFacts": _INTERNAL,
        },
    ),
    **_table(
        "taskyard.v1.SessionService",
        {
            "OpenSession": _INTERNAL,
            "RenewSessions": _INTERNAL_HOT,
            "CloseSession": _INTERNAL,
            "RegisterWorker": _INTERNAL,
            "VerifyApiKey": _INTERNAL,
        },
    ),
    **_table(
        "taskyard.compat.v1.GlobalTaskService",
        {
            "CreateGlobalTask": _WRITE,
            "GetGlobalTask": _READ,
            "UpdateGlobalTask": _WRITE,
            "DeleteGlobalTask": _WRITE,
            "ListGlobalTasks": _READ,
            "PushGlobalTaskUpdate": _WRITE,
            "PushGlobalTaskUpdates": allow(*_USERS, scope=WRITE, validate=False, items="updates"),
        },
    ),
}
