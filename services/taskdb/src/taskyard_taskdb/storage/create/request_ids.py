"""Request ids: the first request of an id wins, a repeat finds what it made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from taskyard.errors import RequestIdReused
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


class Method(IntEnum):
    """The scope of a request id within its tenant. The numbers are stored."""

    CREATE_TASK = 1
    BATCH_CREATE_TASKS = 2
    RETRY_TASK = 3
    REPORT_TASK_STATUS = 4
    UPDATE_TASK = 5
    CREATE_TENANT = 6
    CREATE_TASK_TYPE = 7
    CREATE_SCHEDULE = 8
    RUN_SCHEDULE = 9
    CREATE_GROUP = 11


@dataclass(frozen=True, slots=True)
class Request:
    """A request that may be repeated: its id, what a repeat must be equal in, and the task it is about."""

    tenant_id: str
    request_id: str
    body_hash: bytes
    task_id: str

    @property
    def key(self) -> tuple[str, str]:
        """What is unique per method."""
        return self.tenant_id, self.request_id


async def claim(
    tx: Tx, method: Method, requests: Sequence[Request]
) -> dict[tuple[str, str], str | RequestIdReused]:
    """Records the requests that are new; for each of the others the task of then, or RequestIdReused.

    Waits for concurrent requests of the same ids. The answer is read in a second statement: the snapshot of
    the one that lost the race is older than the winner.
    """
    ordered = sorted(requests, key=lambda request: request.key)
    tenants, ids = [r.tenant_id for r in ordered], [r.request_id for r in ordered]
    inserted = await tx.fetch(
        statement("insert_idempotency_keys"),
        (
            method,
            arrays.texts(tenants),
            arrays.texts(ids),
            arrays.texts([r.task_id for r in ordered]),
            arrays.byteas([r.body_hash for r in ordered]),
        ),
    )
    won = {(str(tenant), str(request_id)) for tenant, request_id in inserted}
    return await find(tx, method, [request for request in ordered if request.key not in won])


async def find(
    tx: Tx, method: Method, requests: Sequence[Request]
) -> dict[tuple[str, str], str | RequestIdReused]:
    """For each request that is recorded the task of then, or RequestIdReused."""
    lost = {request.key: request for request in requests}
    if not lost:
        return {}
    rows = await tx.fetch(
        statement("find_idempotency_keys"),
        (method, arrays.texts([key[0] for key in lost]), arrays.texts([key[1] for key in lost])),
    )
    return {(row[0], row[1]): _compare(lost[(row[0], row[1])], row[2], row[3]) for row in rows}


def _compare(request: Request, task_id: str, body_hash: bytes) -> str | RequestIdReused:
    if request.body_hash == body_hash:
        return task_id
    name = f"tenants/{request.tenant_id}/tasks/{task_id}"
    return RequestIdReused("task", name, request.request_id)


async def redirect(tx: Tx, method: Method, requests: Sequence[Request]) -> None:
    """Lets repeats of these requests, recorded in this transaction, find the task that each now names."""
    await tx.execute(
        statement("redirect_idempotency_keys"),
        (
            method,
            arrays.texts([r.tenant_id for r in requests]),
            arrays.texts([r.request_id for r in requests]),
            arrays.texts([r.task_id for r in requests]),
        ),
    )
