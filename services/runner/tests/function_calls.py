"""What tests of functions share: the application, calls, and what was reported of them."""

from __future__ import annotations

import json

from services.runner.tests.runner_process import function
from services.runner.tests.scheduler_peer import SchedulerPeer, Task
from taskyard.v1.lease_pb2 import RunReport

APP = ("--app", "services.runner.tests.function_app:app", "--kind", "function")


def output(report: RunReport) -> object:
    assert report.WhichOneof("report") == "succeeded", report
    return json.loads(report.succeeded.result.output.raw)


async def call(peer: SchedulerPeer, name: str, payload: object = None) -> object:
    return output(await peer.outcome(peer.assign(function(name, payload))))


def kinds(peer: SchedulerPeer, task: Task) -> list[str]:
    """What was reported; an outcome may carry its start."""
    found: list[str] = []
    for report in peer.reports[task.key]:
        found += ["started"] * report.HasField("start") + [str(report.WhichOneof("report"))]
    return found


def reported(peer: SchedulerPeer, task: Task) -> list[int]:
    """The percentages in the order of their reports."""
    return [report.progress.percent for report in peer.reports[task.key] if report.HasField("progress")]


async def dropped(peer: SchedulerPeer, task: Task) -> None:
    """Returns once a heartbeat has listed the lease as dropped."""
    name = task.assignment.lease.task
    await peer.until(
        lambda: [lease for beat in peer.session.heartbeats for lease in beat.dropped if lease.task == name]
    )
