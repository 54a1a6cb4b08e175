"""The preset niyanta: configurations of workloads as task types, and what they mean for their workloads."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.preset_tasks import create, load
from services.taskdb.tests.rpc.type_calls import PARENT, get, register, update
from services.taskdb.tests.yard import Yard, duration
from taskyard import errors
from taskyard.convert import from_payload
from taskyard.v1 import common_pb2, task_pb2, task_type_pb2, task_type_service_pb2

P = task_pb2
WORKLOAD = "niyanta.workload"


@pytest.fixture
async def preset(admin: Caller) -> task_type_pb2.TaskType:
    """The workload type as it is stored."""
    await load(admin, "niyanta")
    return await get(admin, f"tenants/system/taskTypes/{WORKLOAD}")


async def configuration(tenant: Caller, type_id: str = "video_transcoding", **fields: Any) -> Any:
    return await register(tenant, type_id, execution=P.Execution(function=P.FunctionExecution()), **fields)


@pytest.mark.seed("S2.18", "S2.19", "S2.20", "S2.25", "S2.121")
async def test_a_configuration_comes_back_with_type_description_config_and_times(tenant: Caller) -> None:
    made = await configuration(
        tenant,
        description="turns videos into WebM",
        config=common_pb2.Payload(raw=b'{"codec": "vp9", "crf": 31}'),
        resources=common_pb2.Resources(cpu_millis=2000, memory_mb=1024, disk_mb=2048),
    )
    found = await get(tenant, made.name)
    assert found.name == f"{PARENT}/taskTypes/video_transcoding"
    assert found.description == "turns videos into WebM"
    assert from_payload(found.config) == {"codec": "vp9", "crf": 31}
    limits = found.resources
    assert (limits.cpu_millis, limits.memory_mb, limits.disk_mb) == (2000, 1024, 2048)
    assert found.create_time.seconds > 0 and found.update_time == found.create_time
    listing = await tenant.task_types.ListTaskTypes(task_type_service_pb2.ListTaskTypesRequest(parent=PARENT))
    assert [one.description for one in listing.task_types] == ["turns videos into WebM"]
    changed = await update(tenant, made.name, "description", description="other")
    assert changed.create_time == made.create_time
    assert changed.update_time.ToNanoseconds() > made.update_time.ToNanoseconds()


@pytest.mark.seed("S2.20")
async def test_a_worker_gets_the_config_of_the_configuration(tenant: Caller, yard: Yard) -> None:
    await register(
        tenant,
        "report_generation",
        execution=P.Execution(command=P.CommandExecution(program="true")),
        config=common_pb2.Payload(raw=b'{"format": "pdf"}'),
    )
    await create(tenant, "report_generation")
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    assert from_payload(assignment.config) == {"format": "pdf"}


@pytest.mark.seed("S2.21")
async def test_a_core_512_mb_and_a_gigabyte_of_disk_by_default(
    tenant: Caller, preset: task_type_pb2.TaskType
) -> None:
    spec = (await create(tenant, WORKLOAD)).spec
    assert (spec.resources.cpu_millis, spec.resources.memory_mb, spec.resources.disk_mb) == (1000, 512, 1024)


@pytest.mark.seed("S2.22")
async def test_a_checkpoint_every_five_minutes_by_default_and_zero_is_by_hand(
    tenant: Caller, preset: task_type_pb2.TaskType
) -> None:
    assert (await create(tenant, WORKLOAD)).spec.checkpoint_interval.seconds == 300
    by_hand = (await create(tenant, WORKLOAD, checkpoint_interval=duration(0))).spec
    assert by_hand.HasField("checkpoint_interval") and by_hand.checkpoint_interval.seconds == 0
    with pytest.raises(errors.FieldInvalid):
        await create(tenant, WORKLOAD, checkpoint_interval=duration(-1))


@pytest.mark.seed("S2.23")
async def test_three_retries_of_transient_failures_by_default(
    tenant: Caller, preset: task_type_pb2.TaskType
) -> None:
    retry = (await create(tenant, WORKLOAD)).spec.retry
    assert (retry.max_retries, retry.restart) == (3, common_pb2.RESTART_POLICY_ON_FAILURE)
    backoff = retry.backoff
    assert (backoff.initial.seconds, backoff.max.seconds, backoff.factor) == (1, 30, 2)
    assert backoff.jitter == common_pb2.JITTER_POLICY_FULL


@pytest.mark.seed("S2.24")
async def test_an_hour_by_default(tenant: Caller, preset: task_type_pb2.TaskType) -> None:
    assert (await create(tenant, WORKLOAD)).spec.attempt_timeout.seconds == 3600
    assert (await create(tenant, WORKLOAD, attempt_timeout=duration(60))).spec.attempt_timeout.seconds == 60


@pytest.mark.seed("S2.138")
async def test_workloads_go_to_the_archive_after_90_days(preset: task_type_pb2.TaskType) -> None:
    assert preset.archive and preset.retention.seconds == 90 * 86400


@pytest.mark.seed("S2.16", "S2.26", "S2.128")
async def test_a_configuration_is_identified_by_tenant_and_type(tenant: Caller, admin: Caller) -> None:
    made = await configuration(tenant)
    assert (await create(tenant, "video_transcoding")).status.task_type_name == made.name
    with pytest.raises(errors.AlreadyExists):
        await configuration(tenant, description="a second one")
    await register(
        admin, "video_transcoding", "tenants/system", execution=P.Execution(function=P.FunctionExecution())
    )
    for missing, error in (("", errors.FieldInvalid), ("unknown", errors.TaskTypeUnknown)):
        with pytest.raises(error):
            await create(tenant, missing)


@pytest.mark.seed("S2.17")
async def test_configurations_end_with_their_customer(taskdb: RunningTaskDb, tenant: Caller) -> None:
    await configuration(tenant)
    with pytest.raises(psycopg.IntegrityError):
        await taskdb.execute(
            "INSERT INTO task_types (tenant_id, task_type, definition) VALUES ('no', 't', '')"
        )
    await taskdb.execute("DELETE FROM tenants WHERE tenant_id = 'default'")
    assert await taskdb.rows("SELECT FROM task_types WHERE tenant_id = 'default'") == []
