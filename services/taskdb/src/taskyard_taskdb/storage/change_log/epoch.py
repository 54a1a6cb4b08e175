"""The epoch of the change log: a number per history and timeline, and how far it continues earlier epochs.

The number is drawn at random when a server of a new timeline is first used. Two standbys that were promoted
to the same timeline therefore have different epochs.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


class LogEpoch(NamedTuple):
    """`history` names the server, the database and the restore; a failover changes the timeline only."""

    number: int
    history: str
    timeline: str


class Identity(NamedTuple):
    """What tells one change from another that got the same id on another timeline."""

    id: int
    time: object
    tenant_id: str
    resource_id: str
    version: int
    event: int


async def read(tx: Tx) -> LogEpoch:
    """Return the current epoch; the first call on a new timeline makes its number."""
    found = await find(tx)
    if found is None:
        await tx.execute(statement("make_log_epoch"), {"number": str(secrets.randbits(63))})
        found = await find(tx)
    assert found is not None, "the statement before has inserted it"
    return found


async def find(tx: Tx) -> LogEpoch | None:
    """Return the current epoch; None until its number is made."""
    row = await tx.fetch_row(statement("log_epoch"))
    assert row is not None
    return None if row[0] is None else LogEpoch(*row)


async def record_continuation(tx: Tx, former: int, epoch: int, last_id: int) -> None:
    """Record that `epoch` has the same changes as `former` up to `last_id`, and what `former` continues."""
    values = {"former": str(former), "epoch": str(epoch), "last_id": last_id}
    await tx.execute(statement("insert_log_continuation"), values)


async def continued_until(tx: Tx, former: int, epoch: int) -> int | None:
    """Return the last id up to which `epoch` is known to have the changes of `former`; None if unknown."""
    row = await tx.fetch_row(statement("log_continuation"), {"former": str(former), "epoch": str(epoch)})
    return None if row is None else int(row[0])


async def identities(tx: Tx, after: int, until: int, limit: int) -> list[Identity]:
    """Return the identities of the committed changes above `after` up to `until`."""
    values = {"after": after, "until": until, "limit": limit}
    return [Identity(*row) for row in await tx.fetch(statement("read_identities"), values)]
