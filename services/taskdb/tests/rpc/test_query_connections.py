"""Lists, statistics and audit use connections of their own, and leave those of the work alone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb, run_taskdb
from taskyard.errors import Overloaded
from taskyard.v1 import (
    admin_service_pb2,
    api_key_service_pb2,
    runner_service_pb2,
    task_service_pb2,
    task_type_service_pb2,
    tenant_service_pb2,
)
from taskyard_taskdb.access_policy import POLICIES
from taskyard_taskdb.storage.read import listing
from taskyard_taskdb.storage.tenant import api_keys

TENANT = "tenants/default"
QUERIES: tuple[tuple[str, str, Any], ...] = (
    ("tasks", "ListTasks", task_service_pb2.ListTasksRequest(parent=TENANT)),
    ("tasks", "GetTaskStats", task_service_pb2.GetTaskStatsRequest(parent=TENANT)),
    ("tasks", "ListAuditEvents", task_service_pb2.ListAuditEventsRequest(parent=TENANT)),
    ("runners", "ListRunners", runner_service_pb2.ListRunnersRequest()),
    ("admin", "ListQuarantines", admin_service_pb2.ListQuarantinesRequest(parent=TENANT)),
    ("admin", "RunDoctor", admin_service_pb2.RunDoctorRequest()),
    ("api_keys", "ListApiKeys", api_key_service_pb2.ListApiKeysRequest()),
    ("task_types", "ListTaskTypes", task_type_service_pb2.ListTaskTypesRequest(parent=TENANT)),
    ("tenants", "ListTenants", tenant_service_pb2.ListTenantsRequest()),
)


@pytest.fixture
async def small(database_url: str) -> AsyncIterator[RunningTaskDb]:
    """A taskdb with one connection for queries, for which callers wait 0.1 s."""
    patience = timedelta(milliseconds=100)
    async for running in run_taskdb(database_url, pool_queries=1, pool_timeout=patience, housekeeping=False):
        yield running


async def test_queries_wait_for_their_own_connections_and_work_does_not(small: RunningTaskDb) -> None:
    admin, tenant = await small.caller(api_keys.ADMIN), await small.caller()
    async with small.pool.reading(planned=True):
        for service, method, request in QUERIES:
            with pytest.raises(Overloaded):
                await getattr(getattr(admin, service), method)(request)
                pytest.fail(f"{method} does not use the connections for queries")
        task = await tenant.create()
        assert (await tenant.get(task.name)).name == task.name
    for service, method, request in QUERIES:
        await getattr(getattr(admin, service), method)(request)


async def test_one_tenants_heavy_reads_leave_connections_to_others(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of one tenant that do not end occupy a part of the connections that its key alone would allow;
    another tenant lists meanwhile."""
    entered, release = asyncio.Event(), asyncio.Event()
    list_page = listing.list_page
    running_lists = most = 0

    async def slow(tx: Any, query: listing.Query, *args: Any) -> listing.Page:
        nonlocal running_lists, most
        if query.tenant_id == "greedy":
            running_lists += 1
            most = max(most, running_lists)
            entered.set()
            await release.wait()
            running_lists -= 1
        return await list_page(tx, query, *args)

    monkeypatch.setattr(listing, "list_page", slow)
    connections = 4 * len(os.sched_getaffinity(0))
    async for running in run_taskdb(database_url, pool_queries=connections, housekeeping=False):
        await running.add_tenant("greedy")
        greedy, other = await running.caller(tenant_id="greedy"), await running.caller()
        request = task_service_pb2.ListTasksRequest(parent="tenants/greedy")
        stuck = [asyncio.create_task(greedy.tasks.ListTasks(request)) for _ in range(connections)]
        await entered.wait()
        for _ in range(5):
            await other.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent=TENANT))
        release.set()
        await asyncio.gather(*stuck)
    assert most == max(1, len(os.sched_getaffinity(0)) // 2)


def test_every_batch_of_tasks_is_limited_per_tenant() -> None:
    batches = {name: policy for name, policy in POLICIES.items() if "/Batch" in name}
    assert "/taskyard.v1.TaskService/BatchCreateTasks" in batches
    assert [name for name, policy in batches.items() if not policy.heavy] == []
