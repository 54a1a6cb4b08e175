"""Resource names: how a tenant and an id become one, and back."""

from __future__ import annotations


def tenant_name(tenant: str) -> str:
    """The parent of a tenant's tasks."""
    return f"tenants/{tenant}"


def task_name(tenant: str, task: str) -> str:
    """The full name of a task that is given by id or by full name."""
    return task if task.startswith("tenants/") else f"tenants/{tenant}/tasks/{task}"


def last_segment(name: str) -> str:
    """The id within a full name."""
    return name.rpartition("/")[2]
