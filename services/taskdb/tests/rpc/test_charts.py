"""GetTaskSeries and ListTenantShares: what charts of the last hour and of fair shares need."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard.errors import FieldInvalid, NotFound
from taskyard.v1 import task_service_pb2, tenant_service_pb2
from taskyard_taskdb.rpc import stats as stats_rpc


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_rpc, "CATCH_UP_SECONDS", 10.0)


async def series(caller: Any, parent: str = "tenants/default", **fields: Any) -> list[Any]:
    request = task_service_pb2.GetTaskSeriesRequest(parent=parent, **fields)
    return list((await caller.tasks.GetTaskSeries(request)).points)


async def shares(caller: Any) -> list[tenant_service_pb2.UsedShare]:
    answer = await caller.tenants.ListTenantShares(tenant_service_pb2.ListTenantSharesRequest())
    return list(answer.shares)


def total(points: list[Any], field: str) -> int:
    return sum(getattr(point, field) for point in points)


async def test_series_counts_what_happened_by_minute(tenant: Any, yard: Yard) -> None:
    assert await series(tenant) == []
    await yard.create(5)
    runner, _ = await yard.hello()
    claimed = list((await yard.claim(runner, 4)).assignments)
    await yard.report(runner, *(started(assignment) for assignment in claimed[:3]))
    await yard.report(runner, succeeded(claimed[0]), failed(claimed[1], permanent=True))
    for _ in range(2):
        points = await series(tenant)
        assert total(points, "created_count") == 5 and total(points, "started_count") == 3
        assert total(points, "succeeded_count") == 1 and total(points, "failed_count") == 1
        waits = [point.mean_wait.ToTimedelta() for point in points if point.HasField("mean_wait")]
        assert waits and all(timedelta(0) < wait < timedelta(minutes=1) for wait in waits)
    times = [point.time.ToDatetime(UTC) for point in points]
    assert times == sorted(times) and all(time.second == 0 for time in times)
    assert datetime.now(UTC) - times[-1] < timedelta(minutes=3)


@pytest.mark.covers("GetTaskSeries", "FIELD_INVALID")
async def test_series_covers_its_window_only(taskdb: RunningTaskDb, tenant: Any, yard: Yard) -> None:
    await yard.create(1)
    assert len(await series(tenant)) == 1
    await taskdb.execute("UPDATE task_minutes SET minute = minute - interval '90 minutes'")
    assert await series(tenant) == []
    assert len(await series(tenant, window=Duration(seconds=7200))) == 1
    with pytest.raises(FieldInvalid, match="window"):
        await series(tenant, window=Duration(seconds=3))


async def test_a_tenant_sees_its_own_series_and_share_only(
    taskdb: RunningTaskDb, tenant: Any, admin: Any, yard: Yard
) -> None:
    await taskdb.add_tenant("other")
    other = await taskdb.caller(tenant_id="other")
    await yard.create(2)
    runner, _ = await yard.hello()
    claimed = list((await yard.claim(runner, 2)).assignments)
    await yard.report(runner, *(started(assignment) for assignment in claimed))
    await taskdb.execute("UPDATE leases SET start_time = start_time - interval '1 minute'")
    assert await series(other, "tenants/other") == await series(other, "tenants/-") == []
    with pytest.raises(NotFound):
        await series(other, "tenants/default")
    assert total(await series(admin, "tenants/-"), "created_count") == 2
    assert await shares(other) == []
    for caller in (tenant, admin):
        [share] = await shares(caller)
        assert (share.tenant, share.running_count) == ("tenants/default", 2)
        assert share.used_share == share.due_share == 1.0 and share.weight >= 1


async def test_shares_are_by_use_and_by_weight(taskdb: RunningTaskDb, admin: Any, yard: Yard) -> None:
    await taskdb.add_tenant("other")
    usage = "INSERT INTO tenant_usage (update_time, usage, tenant_id) VALUES (now(), %s, %s)"
    await taskdb.execute(usage, 300.0, "default")
    await taskdb.execute(usage, 100.0, "other")
    await taskdb.execute("UPDATE tenants SET weight = 10 WHERE tenant_id = 'default'")
    await taskdb.execute("UPDATE tenants SET weight = 40 WHERE tenant_id = 'other'")
    first, second = await shares(admin)
    assert (first.tenant, first.weight, first.due_share) == ("tenants/default", 10, 0.2)
    assert (second.tenant, second.weight, second.due_share) == ("tenants/other", 40, 0.8)
    assert (first.used_share, second.used_share) == pytest.approx((0.75, 0.25), abs=0.01)
