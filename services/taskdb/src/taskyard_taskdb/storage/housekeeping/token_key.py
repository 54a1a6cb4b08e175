"""The key that seals page and resume tokens: made once per database, the same for all replicas."""

from __future__ import annotations

import secrets

from taskyard_taskdb.domain.token_seal import KEY_BYTES
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


async def read(tx: Tx) -> bytes:
    """Return the key; the first call makes it."""
    await tx.execute(statement("make_token_key"), {"value": secrets.token_hex(KEY_BYTES)})
    row = await tx.fetch_row(statement("read_token_key"))
    assert row is not None, "the statement before has inserted it"
    return bytes.fromhex(row[0])
