"""Keys for tests and benchmarks, written to the database as `taskyard-taskdb keys create` does."""

import os
import subprocess
import sys

import psycopg

from taskyard_kit.keys import ApiKey
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant import api_keys


def make_key(url: str, kind: str, tenant: str = "") -> str:
    """A new key of that kind, made by the real command."""
    of_tenant = ("--tenant", tenant) if tenant else ()
    made = subprocess.run(
        [sys.executable, "-m", "taskyard_taskdb", "keys", "create", "--kind", kind, *of_tenant],
        env={**os.environ, "TASKYARD_DATABASE_URL": url},
        check=True,
        capture_output=True,
        text=True,
    )
    return made.stdout.strip()


async def insert_key(url: str, kind: int) -> ApiKey:
    """A new key, written by what the command calls: quicker. A tenant's acts for "default"."""
    key = ApiKey.make()
    tenant_id = "default" if kind == api_keys.TENANT else None
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await api_keys.insert_key(
            Tx(connection), api_keys.StoredKey(key.id, kind, key.digest, tenant_id=tenant_id)
        )
    return key
