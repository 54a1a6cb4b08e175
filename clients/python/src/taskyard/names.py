"""Resource names: how a tenant and an id become one, and back; and ids of requests."""

from __future__ import annotations

import os
import time


def tenant_name(tenant: str) -> str:
    """The full name of a tenant, and the parent of its tasks."""
    return tenant if tenant.startswith("tenants/") else f"tenants/{tenant}"


def task_name(tenant: str, task: str) -> str:
    """The full name of a task that is given by id or by full name."""
    return task if task.startswith("tenants/") else f"tenants/{tenant}/tasks/{task}"


def task_type_name(tenant: str, task_type: str) -> str:
    """The full name of a task type that is given by id or by full name."""
    return task_type if task_type.startswith("tenants/") else f"{tenant_name(tenant)}/taskTypes/{task_type}"


def group_name(tenant: str, group: str) -> str:
    """The full name of a group that is given by id or by full name."""
    return group if group.startswith("tenants/") else f"{tenant_name(tenant)}/groups/{group}"


def limit_name(tenant: str, limit: str) -> str:
    """The full name of a limit that is given by id or by full name."""
    return limit if limit.startswith("tenants/") else f"{tenant_name(tenant)}/limits/{limit}"


def schedule_name(tenant: str, schedule: str) -> str:
    """The full name of a schedule that is given by id or by full name."""
    return schedule if schedule.startswith("tenants/") else f"{tenant_name(tenant)}/schedules/{schedule}"


def runner_name(runner: str) -> str:
    """The full name of a runner that is given by id or by full name."""
    return runner if runner.startswith("runners/") else f"runners/{runner}"


def new_request_id() -> str:
    """A unique id that begins with the time, so that ids created together are stored together in the
    server's index.
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


def last_segment(name: str) -> str:
    """The id within a full name."""
    return name.rpartition("/")[2]
