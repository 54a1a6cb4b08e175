"""Sign-in codes in the database: a key makes one, and a browser exchanges it once for a key of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.storage.tenant.api_keys import StoredKey

CODES_PER_KEY = 10


async def insert_code(
    tx: Tx, key: StoredKey, code_id: str, secret_hash: bytes, valid_for: timedelta
) -> datetime:
    """Store a code of a locked key in place of the oldest beyond the limit; when it expires."""
    await tx.execute(statement("trim_sign_in_codes"), {"key_id": key.key_id, "keep": CODES_PER_KEY - 1})
    values = {
        "code_id": code_id,
        "secret_hash": secret_hash,
        "key_id": key.key_id,
        "valid_for": valid_for,
    }
    row = await tx.fetch_row(statement("insert_sign_in_code"), values)
    assert row is not None
    expire_time: datetime = row[0]
    return expire_time


async def exchange_code(
    tx: Tx,
    code_id: str,
    matches: Callable[[bytes], bool],
    made_id: str,
    made_hash: bytes,
    expire_time: datetime,
) -> StoredKey | None:
    """Use a code up; the new key, which ends with the key that made the code. None if the code is not valid.

    The key is locked before the code is deleted, as in `insert_code`, so that a revocation of the key either
    sees the new key or is seen here.
    """
    found = await tx.fetch_row(statement("find_sign_in_code"), (code_id,))
    if found is None or not matches(found[0]):
        return None
    parent = await api_keys.lock_key(tx, found[1])
    used = await tx.fetch_row(statement("use_sign_in_code"), (code_id,))
    if parent is None or used is None or parent.revoke_time is not None:
        return None
    if parent.expire_time is not None:
        expire_time = min(expire_time, parent.expire_time)
    key = replace(
        parent,
        key_id=made_id,
        secret_hash=made_hash,
        description=f"sign-in of key {parent.key_id}",
        expire_time=expire_time,
        parent_key_id=parent.parent_key_id or parent.key_id,
    )
    await tx.execute(statement("delete_ended_sign_ins"), (key.parent_key_id,))
    return replace(key, create_time=await api_keys.insert_key(tx, key))
