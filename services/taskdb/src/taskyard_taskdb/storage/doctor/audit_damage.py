"""Damage to the change log: RunDoctor finds ranges that differ from their seals, and acknowledges them.

An edited log cannot be restored. An acknowledgement records who has seen the damage and when. It is a change
of the log itself, so it is sealed like any other. It contains a fingerprint of the range, so a further edit
is a new finding. The log and its seals are never rewritten, and `audit verify` always reports the damage.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.doctor.repairs import RepairContext
from taskyard_taskdb.storage.notify.notice import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import database_time
from taskyard_taskdb.storage.transition.task_rows import Key

# The newest ranges of the log are compared with their seals; `audit verify` compares all of them.
NEWEST = 1000
OWNER = "system"


async def find(tx: Tx) -> list[Key]:
    """Return the ranges that differ from their seals."""
    found = await seals.verify_seals(tx, newest=NEWEST)
    return list(dict.fromkeys((OWNER, f"{one.after_id + 1}-{one.last_id}") for one in found))


async def acknowledged(tx: Tx, found: Sequence[Key]) -> set[Key]:
    """Return the damaged ranges whose present state is acknowledged."""
    if not found:
        return set()
    ranges = arrays.texts([key[1] for key in found])
    event = int(ChangeEvent.AUDIT_DAMAGE_ACKNOWLEDGED)
    rows = await tx.fetch(statement("doctor_acknowledgements"), {"ranges": ranges, "event": event})
    acknowledged_now = {(row[0], row[1]) for row in rows}
    return {key for key in found if (key[1], await _fingerprint(tx, *_limits(key))) in acknowledged_now}


async def acknowledge(context: RepairContext, keys: Sequence[Key]) -> None:
    """Append an acknowledgement of each damaged range to the log."""

    async def work(tx: Tx) -> CommitNotice:
        notice = CommitNotice()
        for key in keys:
            after, last = _limits(key)
            messages = [one.message for one in await seals.verify_seals(tx, after, last)]
            if messages:
                details = {"found": messages, "fingerprint": await _fingerprint(tx, after, last)}
                event, now = ChangeEvent.AUDIT_DAMAGE_ACKNOWLEDGED, await database_time(tx)
                await append_change(tx, event, OWNER, key[1], context.actor, now, details=details)
                notice.changed = True
        return notice

    context.on_commit(await context.pool.run(work))


def _limits(key: Key) -> tuple[int, int]:
    """Return the id before the range and its last id."""
    first, _, last = key[1].partition("-")
    return int(first) - 1, int(last)


async def _fingerprint(tx: Tx, after: int, last: int) -> str:
    """Return a hash of the present changes and seals of a range."""
    params = {"after": after, "until": last}
    rows = await tx.fetch_row(statement(f"digest_changes_{seals.FORM}"), params)
    chain = await tx.fetch_row(statement("doctor_digest_seals"), params)
    assert rows is not None and chain is not None
    return sha256(bytes(rows[3]) + bytes(chain[0])).hexdigest()
