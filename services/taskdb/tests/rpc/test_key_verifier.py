"""Keys are verified while the database has no connection left for work."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress

from services.taskdb.tests.conftest import RunningTaskDb, make_key
from taskyard import errors
from taskyard_kit.keys import ApiKey
from taskyard_taskdb.key_verifier import StoredKeyVerifier
from taskyard_taskdb.storage.tenant import api_keys


async def test_keys_of_schedulers_are_verified_while_all_work_connections_are_in_use(
    quiet: RunningTaskDb,
) -> None:
    verifier = StoredKeyVerifier(quiet.pool)
    key = ApiKey.parse(await make_key(quiet.pool, api_keys.SCHEDULER))
    assert await verifier.verify(key) is not None
    async with AsyncExitStack() as held:
        with suppress(errors.Overloaded):
            while True:
                await held.enter_async_context(quiet.pool.transaction())
        assert await verifier.verify(key) is not None
