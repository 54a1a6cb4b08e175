"""Niyanta's words for events: each stands for an event that taskdb writes, and finds it."""

from __future__ import annotations

import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.rpc.test_audit import events
from services.taskdb.tests.rpc.test_checkpoints import pieces, write
from services.taskdb.tests.yard import Yard, failed, released, started, succeeded
from taskyard.event_words import NIYANTA, niyanta_filter, to_niyanta
from taskyard.v1 import common_pb2, lease_pb2, task_service_pb2
from taskyard_taskdb.domain.change import BY_WORD
from taskyard_taskdb.storage.tenant import api_keys


def test_every_event_of_the_mapping_is_one_of_taskdb() -> None:
    assert set(NIYANTA) <= set(BY_WORD)
    assert to_niyanta("task.updated") == "task.updated"
    with pytest.raises(ValueError, match=r"'workload\.ended' is none of"):
        niyanta_filter("workload.ended")


@pytest.mark.seed("S2.89-98")
async def test_the_life_of_tasks_is_found_by_niyantas_words(yard: Yard, taskdb: RunningTaskDb) -> None:
    runner, _ = await yard.hello()
    done, bad, gone = await yard.create(3)
    by_task = {a.lease.task: a for a in (await yard.claim(runner)).assignments}
    progress = common_pb2.Progress(percent=10)
    await yard.report(runner, *(started(assignment) for assignment in by_task.values()))
    await yard.report(runner, lease_pb2.RunReport(lease=by_task[done].lease, progress=progress))
    await write(yard, pieces(runner.id, by_task[done].lease, 1, b"state", progress_percent=40))
    await yard.report(runner, succeeded(by_task[done]), failed(by_task[bad], permanent=True))
    await yard.tenant.tasks.PauseTask(task_service_pb2.PauseTaskRequest(name=gone))
    await yard.report(runner, released(by_task[gone], lease_pb2.RELEASE_REASON_PAUSED))
    await yard.tenant.tasks.ResumeTask(task_service_pb2.ResumeTaskRequest(name=gone))
    await yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=gone))
    expected = {
        "workload.created": {done, bad, gone},
        "workload.scheduled": {done, bad, gone},
        "workload.started": {done, bad, gone},
        "workload.checkpoint_created": {done},
        "workload.progress_updated": {done},
        "workload.paused": {gone},
        "workload.resumed": {gone},
        "workload.failed": {bad},
        "workload.completed": {done},
        "workload.cancelled": {gone},
    }
    for word, names in expected.items():
        found = await events(yard.tenant, niyanta_filter(word))
        assert {event.resource for event in found} == names, word
        assert {to_niyanta(event.event_type) for event in found} == {word}
    admin = await taskdb.caller(api_keys.ADMIN)
    (registered,) = await events(admin, niyanta_filter("worker.registered"), parent="tenants/system")
    assert registered.resource == f"runners/{runner.id}"
