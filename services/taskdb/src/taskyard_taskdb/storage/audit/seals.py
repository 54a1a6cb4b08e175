"""Seals: a hash chain over the decided part of the change log, and its verification."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

BEGINNING = b"\0" * 32
# The serialisation of rows. A new form gets a new number and a new statement, so that old seals stay valid.
FORM = 1
# About 20 ms of one core for PostgreSQL.
MOST_CHANGES = 5_000
_PAGE = 500
_LATEST = 2**63 - 1
# The fact that stores before which time retention has dropped changes.
_DROPPED = "changes_dropped_before"


class Seal(NamedTuple):
    """A seal of the changes above `after_id` up to `last_id`; fields in the column order of read_seals."""

    last_id: int
    after_id: int
    change_count: int
    first_time: datetime
    last_time: datetime
    form: int
    previous_hash: bytes
    hash: bytes


class Digest(NamedTuple):
    """The count, times and hash of the changes that a range has now."""

    change_count: int
    first_time: datetime | None
    last_time: datetime | None
    rows_hash: bytes


@dataclass(frozen=True, slots=True)
class SealFinding:
    """A range of the log that differs from its seal."""

    after_id: int
    last_id: int
    message: str


async def last_seal(tx: Tx) -> Seal | None:
    """Return the newest seal."""
    row = await tx.fetch_row(statement("last_seal"))
    return Seal(*row) if row else None


async def next_seal(tx: Tx, former: Seal | None, until: int, most: int = MOST_CHANGES) -> Seal | None:
    """Make the seal after `former` without storing it; None if every change up to `until` is sealed."""
    after = former.last_id if former else 0
    row = await tx.fetch_row(
        statement("end_of_range"), {"after": after, "until": min(until, _LATEST), "limit": most}
    )
    if row is None or row[0] is None:
        return None
    last: int = row[0]
    digest = await _digest(tx, after, last, FORM)
    assert digest.first_time is not None and digest.last_time is not None, "the range has a change"
    previous = former.hash if former else BEGINNING
    made = _chain_hash(previous, after, last, digest)
    return Seal(last, after, digest.change_count, digest.first_time, digest.last_time, FORM, previous, made)


async def store(tx: Tx, seal: Seal) -> bool:
    """Append a seal to the chain; returns False if another seal was appended meanwhile."""
    return await tx.execute(statement("insert_seal"), seal._asdict()) == 1


async def record_dropped(tx: Tx, before: datetime) -> None:
    """Record that retention dropped the changes before this time, so that verification skips them."""
    former = await dropped_before(tx)
    if former is None or before > former:
        values = {"key": _DROPPED, "value": before.astimezone(UTC).isoformat()}
        await tx.execute(statement("write_fact"), values)


async def dropped_before(tx: Tx) -> datetime | None:
    """Return before which time retention has dropped changes; None if it dropped none."""
    row = await tx.fetch_row(statement("read_fact"), {"key": _DROPPED})
    return datetime.fromisoformat(row[0]) if row else None


async def verify_seals(
    tx: Tx, after: int = 0, until: int = _LATEST, *, newest: int | None = None
) -> list[SealFinding]:
    """Compare the log with its seals: finds rows edited, deleted or inserted, and breaks in the chain.

    Checks the seals in (after, until], or only the `newest` of them. Rows that retention has dropped are
    not findings. Reads about 500,000 changes per second.
    """
    if newest is not None:
        after = max(after, await _start_of_newest(tx, newest))
    former = await _seal_before(tx, after)
    dropped = await dropped_before(tx)
    findings: list[SealFinding] = []
    async for seal in _seals(tx, after, until):
        findings += _check_chain(former, seal)
        if dropped is None or seal.first_time >= dropped:
            findings += await _check_rows(tx, seal)
        former = seal
    return findings


async def check_expected_seal(tx: Tx, last_id: int, digest: bytes) -> list[SealFinding]:
    """Check that a seal recorded elsewhere still exists; a truncated log has lost it."""
    seal = await _seal_before(tx, last_id)
    if seal is None or seal.last_id != last_id:
        message = f"the seal of change {last_id} is missing: the log was truncated or replaced"
        return [SealFinding(seal.last_id if seal else 0, last_id, message)]
    if seal.hash != digest:
        message = (
            f"the seal of change {last_id} is {seal.hash.hex()}, not {digest.hex()}: the log was rewritten"
        )
        return [SealFinding(seal.after_id, last_id, message)]
    return []


def _chain_hash(previous: bytes, after: int, last: int, digest: Digest) -> bytes:
    numbers = b"".join(number.to_bytes(8, "big") for number in (after, last, digest.change_count))
    return sha256(previous + numbers + digest.rows_hash).digest()


async def _digest(tx: Tx, after: int, until: int, form: int) -> Digest:
    row = await tx.fetch_row(statement(f"digest_changes_{form}"), {"after": after, "until": until})
    assert row is not None
    return Digest(*row)


async def _start_of_newest(tx: Tx, newest: int) -> int:
    row = await tx.fetch_row(
        "SELECT after_id FROM seals ORDER BY last_id DESC OFFSET %s LIMIT 1", (newest - 1,)
    )
    return int(row[0]) if row else 0


async def _seal_before(tx: Tx, until: int) -> Seal | None:
    row = await tx.fetch_row(statement("seal_before"), {"until": until})
    return Seal(*row) if row else None


async def _seals(tx: Tx, after: int, until: int) -> AsyncIterator[Seal]:
    while True:
        values = {"after": after, "until": until, "limit": _PAGE}
        page = [Seal(*row) for row in await tx.fetch(statement("read_seals"), values)]
        for seal in page:
            yield seal
        if len(page) < _PAGE:
            return
        after = page[-1].last_id


def _check_chain(former: Seal | None, seal: Seal) -> list[SealFinding]:
    expected = (former.last_id, former.hash) if former else (0, BEGINNING)
    if (seal.after_id, seal.previous_hash) == expected:
        return []
    message = f"the seal of changes {seal.after_id + 1} to {seal.last_id} does not follow its predecessor"
    return [SealFinding(expected[0], seal.last_id, f"{message}: a seal was edited or deleted")]


async def _check_rows(tx: Tx, seal: Seal) -> list[SealFinding]:
    digest = await _digest(tx, seal.after_id, seal.last_id, seal.form)
    if _chain_hash(seal.previous_hash, seal.after_id, seal.last_id, digest) == seal.hash:
        return []
    span = f"of {seal.change_count} changes from {seal.after_id + 1} to {seal.last_id}"
    if digest.change_count < seal.change_count:
        message = f"{seal.change_count - digest.change_count} {span} are missing"
    elif digest.change_count > seal.change_count:
        message = (
            f"{digest.change_count - seal.change_count} changes were added to the {span.removeprefix('of ')}"
        )
    else:
        message = f"at least one {span} differs from its seal"
    return [SealFinding(seal.after_id, seal.last_id, message)]
