"""Calls about named limits that several tests make."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from taskyard.v1 import limit_pb2, limit_service_pb2, task_pb2
from taskyard_taskdb.storage.limit import backlog

PARENT = "tenants/default"


def rate(count: int, seconds: float) -> limit_pb2.StartRate:
    made = limit_pb2.StartRate(count=count)
    made.per.FromTimedelta(timedelta(seconds=seconds))
    return made


def limit_name(limit_id: str) -> str:
    return f"{PARENT}/limits/{limit_id}"


async def create_limit(caller: Caller, limit_id: str, **fields: Any) -> limit_pb2.Limit:
    request = limit_service_pb2.CreateLimitRequest(
        parent=PARENT, limit_id=limit_id, limit=limit_pb2.Limit(**fields)
    )
    made: limit_pb2.Limit = (await caller.limits.CreateLimit(request)).limit
    return made


async def get_limit(caller: Caller, limit_id: str) -> limit_pb2.Limit:
    found: limit_pb2.Limit = (
        await caller.limits.GetLimit(limit_service_pb2.GetLimitRequest(name=limit_name(limit_id)))
    ).limit
    return found


async def update_limit(caller: Caller, limit_id: str, **fields: Any) -> limit_pb2.Limit:
    request = limit_service_pb2.UpdateLimitRequest(limit=limit_pb2.Limit(name=limit_name(limit_id), **fields))
    request.update_mask.paths.extend(fields)
    changed: limit_pb2.Limit = (await caller.limits.UpdateLimit(request)).limit
    return changed


async def delete_limit(caller: Caller, limit_id: str) -> None:
    await caller.limits.DeleteLimit(limit_service_pb2.DeleteLimitRequest(name=limit_name(limit_id)))


def uses(*given: str) -> list[task_pb2.LimitUse]:
    """Of "limit", "limit:key" or "limit:key:units"."""
    made = []
    for text in given:
        limit, key, units = (*text.split(":"), "", "")[:3]
        made.append(task_pb2.LimitUse(limit=limit, key=key, units=int(units or 0)))
    return made


async def sweep(taskdb: RunningTaskDb) -> int:
    """Admit everything that is due; how many limits were looked at."""
    count = 0
    while found := (await taskdb.pool.run(backlog.advance)).count:
        count += found
    return count
