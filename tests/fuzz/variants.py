"""Valid requests beyond the plain one of each RPC: callbacks, slots, dependencies, types, outcomes."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1 import common_pb2, lease_pb2, task_pb2
from tests.harness.rpc_requests import Objects, new_task


def varied(rng: random.Random, path: str, message: Any, receiver: str, objects: Objects) -> None:
    """Change a valid request into another valid one."""
    match path.rpartition("/")[2]:
        case "CreateTask":
            _vary_task(rng, message.task, receiver, objects)
        case "BatchCreateTasks":
            for request in message.requests:
                _vary_task(rng, request.task, receiver, objects)
        case "ReportWork":
            for report in message.reports:
                vary_report(rng, report)
        case "ExplainTask" if rng.random() < 0.5:
            message.spec.CopyFrom(new_task(objects).spec)
        case "ClaimTasks":
            message.max_tasks = rng.choice((1, 2, 20))
        case "ListTasks" | "WatchTasks" | "GetTaskStats" if rng.random() < 0.5:
            message.filter = rng.choice(('metadata.labels.team = "a"', "status.phase = PENDING"))
        case "UpdateTask" | "ReportTaskStatus" if rng.random() < 0.3:
            message.request_id = "repeated"


def vary_report(rng: random.Random, report: lease_pb2.RunReport) -> None:
    """Another outcome of a run."""
    match rng.randrange(6):
        case 0:
            report.started.SetInParent()
        case 1:
            report.succeeded.result.output.json.update({"n": 1})
        case 2:
            report.failed.error.code = "EXIT_NONZERO"
            report.failed.error.error_class = common_pb2.ERROR_CLASS_PERMANENT
        case 3:
            report.released.reason = lease_pb2.RELEASE_REASON_NO_CAPACITY
        case 4:
            report.timed_out.code = "ATTEMPT_TIMEOUT"


def _vary_task(rng: random.Random, task: task_pb2.Task, receiver: str, objects: Objects) -> None:
    spec = task.spec
    if objects.task == "none":
        task.metadata.parent_task = ""
    if rng.random() < 0.4 and receiver:
        spec.callback.url = receiver
    if rng.random() < 0.2:
        spec.execution.external.SetInParent()
    if rng.random() < 0.2:
        spec.slot = rng.choice(("s", "t"))
        spec.admission = rng.choice(list(task_pb2.AdmissionPolicy.values()))
    if rng.random() < 0.2 and objects.task != "none":
        when = rng.choice(list(task_pb2.DependencyCondition.values()))
        spec.after.add(task=objects.task, when=when, alias=rng.choice(("", "input")))
    if rng.random() < 0.2 and objects.task_type != "none":
        spec.task_type = objects.task_type
    if rng.random() < 0.1 and objects.limit != "none":
        spec.limits.add(limit=objects.limit)
    if rng.random() < 0.1 and objects.group != "none":
        task.metadata.group = objects.group
    if rng.random() < 0.1:
        spec.not_before.CopyFrom(Timestamp(seconds=1_900_000_000))
    if rng.random() < 0.2:
        spec.placement.required.selector.match_labels["zone"] = "a"
    if rng.random() < 0.2:
        spec.retry.max_retries = 2
        spec.attempt_timeout.seconds = 60
