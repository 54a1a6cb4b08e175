"""Leases as holders name them, and what holders must know about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from taskyard_taskdb.domain.words import Action
from taskyard_taskdb.storage.transition.task_rows import Key


class Lease(NamedTuple):
    """Names a lease and proves that it is held."""

    tenant_id: str
    task_id: str
    generation: int
    lease_id: int

    @property
    def key(self) -> Key:
        """Tenant and task id."""
        return self.tenant_id, self.task_id

    @property
    def name(self) -> str:
        """The resource name of the task."""
        return f"tenants/{self.tenant_id}/tasks/{self.task_id}"


@dataclass(frozen=True, slots=True)
class LeaseVerdict:
    """What the holder of a lease must do; no action means that the lease is lost for good."""

    lease: Lease
    action: Action | None
    reason: str
    grace: timedelta | None = None

    @classmethod
    def abort(cls, lease: Lease, reason: str) -> LeaseVerdict:
        """Stop at once and report nothing, for the reason of an error."""
        return cls(lease, None, reason)
