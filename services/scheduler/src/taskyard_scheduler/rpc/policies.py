"""Who may call what on a scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from taskyard_kit.auth import Kind, Policy, allow

_LINK = "/taskyard.v1.RunnerLinkService/"
_WORK = "/taskyard.v1.WorkService/"

POLICIES: Mapping[str, Policy] = {
    # The messages of the link are validated where they are read: reports are too many for the general way.
    _LINK + "Connect": allow(Kind.RUNNER, validate=False, wellformed=False),
    _LINK + "DownloadCheckpoint": allow(Kind.RUNNER),
    # taskdb validates the children, which may lack what their task type fills in.
    _LINK + "SubmitChildTasks": allow(Kind.RUNNER, validate=False),
    _LINK + "FetchChildOutcomes": allow(Kind.RUNNER),
    _WORK + "ClaimTasks": allow(Kind.RUNNER, waits=True),
    _WORK + "RenewWork": allow(Kind.RUNNER),
    _WORK + "ReportWork": allow(Kind.RUNNER),
    # Lines of a log are stored as the task has written them.
    _WORK + "AppendWorkLogs": allow(Kind.RUNNER, items="batches"),
    _WORK + "WriteWorkCheckpoint": allow(Kind.RUNNER),
    _WORK + "ReadWorkCheckpoint": allow(Kind.RUNNER),
    "/taskyard.v1.ExplainService/ExplainTask": allow(Kind.TENANT, Kind.ADMIN),
}
