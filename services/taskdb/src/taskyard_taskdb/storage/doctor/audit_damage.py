"""What RunDoctor says of the seals of the change log, and how damage to the log is acknowledged.

A log that was edited cannot be made as it was. An acknowledgement says who knows of it and since when. It is
a change of the log itself, so that it is sealed like any other, and it names the range as it is now: whoever
edits the range again is found again. Nothing of the log or of its seals is rewritten, and `audit verify`
tells of the damage for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.doctor.repairs import RepairContext
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.transitions import Written, database_time

# The newest ranges of the log are compared with their seals; `audit verify` compares all of them.
NEWEST = 1000
OWNER = "system"


async def find(tx: Tx) -> list[Key]:
    """Ranges that are not as they were sealed."""
    found = await seals.verify_seals(tx, newest=NEWEST)
    return list(dict.fromkeys((OWNER, f"{one.after_id + 1}-{one.last_id}") for one in found))


async def acknowledged(tx: Tx, found: Sequence[Key]) -> set[Key]:
    """Those of the damaged ranges that somebody has acknowledged as they are now."""
    if not found:
        return set()
    ranges = arrays.texts([key[1] for key in found])
    event = int(ChangeEvent.AUDIT_DAMAGE_ACKNOWLEDGED)
    rows = await tx.fetch(statement("doctor_acknowledgements"), {"ranges": ranges, "event": event})
    known = {(row[0], row[1]) for row in rows}
    return {key for key in found if (key[1], await _fingerprint(tx, *_limits(key))) in known}


async def acknowledge(context: RepairContext, keys: Sequence[Key]) -> None:
    """Note in the log that its damage is known, and to whom."""

    async def work(tx: Tx) -> Written:
        written = Written()
        for key in keys:
            after, last = _limits(key)
            told = [one.message for one in await seals.verify_seals(tx, after, last)]
            if told:
                details = {"found": told, "fingerprint": await _fingerprint(tx, after, last)}
                event, now = ChangeEvent.AUDIT_DAMAGE_ACKNOWLEDGED, await database_time(tx)
                await append_change(tx, event, OWNER, key[1], context.actor, now, details=details)
                written.changed = True
        return written

    context.on_commit(await context.pool.run(work))


def _limits(key: Key) -> tuple[int, int]:
    """Behind which change the range begins, and its last."""
    first, _, last = key[1].partition("-")
    return int(first) - 1, int(last)


async def _fingerprint(tx: Tx, after: int, last: int) -> str:
    """What the changes and the seals of a range are now."""
    params = {"after": after, "until": last}
    rows = await tx.fetch_row(statement(f"digest_changes_{seals.FORM}"), params)
    chain = await tx.fetch_row(statement("doctor_digest_seals"), params)
    assert rows is not None and chain is not None
    return sha256(bytes(rows[3]) + bytes(chain[0])).hexdigest()
