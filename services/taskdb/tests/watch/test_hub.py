"""The hub: which changes a stream gets, and how slow streams catch up."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from services.taskdb.tests.watch.log_rows import change
from taskyard.errors import ResumeTokenInvalid, StreamLimit
from taskyard_taskdb.storage.change_log.append import ChangeRow, insert_changes
from taskyard_taskdb.storage.change_log.read import LoggedChange
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx
from taskyard_taskdb.watch import hub as hub_module
from taskyard_taskdb.watch import subscription as subscription_module
from taskyard_taskdb.watch import token
from taskyard_taskdb.watch.hub import Hub
from taskyard_taskdb.watch.subscription import Subscription
from taskyard_taskdb.watch.token import ResumeToken

WAIT = 5.0


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    pool = Pool(database_url, PoolOptions(size=4))
    await pool.open()
    yield pool
    await pool.close()


@pytest.fixture
async def hub(pool: Pool) -> AsyncIterator[Hub]:
    hub = Hub(pool)
    running = asyncio.create_task(hub.run())
    await asyncio.wait_for(hub.ready(), WAIT)
    yield hub
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def write(pool: Pool, hub: Hub, *rows: ChangeRow) -> None:
    async with pool.transaction() as tx:
        await insert_changes(tx, rows)
    hub.wake()


async def take(subscription: Subscription, count: int) -> list[tuple[str, int]]:
    """Return the next `count` changes of a subscription, as task and version."""
    taken: list[tuple[str, int]] = []
    async with asyncio.timeout(WAIT):
        while len(taken) < count:
            taken += [(c.resource_id, c.version) for c in await subscription.next(WAIT)]
    return taken


async def test_a_stream_gets_the_changes_of_its_tenant_only(pool: Pool, hub: Hub) -> None:
    own, everything = hub.subscribe("default"), hub.subscribe(None)
    await write(pool, hub, change("a", 1), change("b", 1, "system"), change("a", 2))
    assert await take(own, 2) == [("a", 1), ("a", 2)]
    assert await take(everything, 3) == [("a", 1), ("b", 1), ("a", 2)]


async def test_a_stream_of_named_tasks_gets_nothing_else(pool: Pool, hub: Hub) -> None:
    subscription = hub.subscribe("default", frozenset({("default", "b")}))
    await write(pool, hub, change("a", 1), change("b", 1), change("c", 1), change("b", 2))
    assert await take(subscription, 2) == [("b", 1), ("b", 2)]


async def test_tasks_that_streams_send_are_read_once_for_all_streams(pool: Pool, hub: Hub) -> None:
    prepared: list[str] = []

    async def prepare(tx: Tx, changes: Sequence[LoggedChange]) -> None:
        prepared.extend(change.resource_id for change in changes)

    hub.before_waking(prepare)
    shown, waited = frozenset({("default", "a")}), frozenset({("default", "b")})
    streams = [hub.subscribe("default", shown, shows_tasks=True) for _ in range(3)]
    waiting = hub.subscribe("default", waited)
    await write(pool, hub, change("a", 1), change("b", 1), change("c", 1), change("a", 2))
    for stream in streams:
        assert await take(stream, 2) == [("a", 1), ("a", 2)]
    assert await take(waiting, 1) == [("b", 1)]
    assert prepared == ["a", "a"]


async def test_a_slow_stream_loses_no_change_and_its_buffer_stays_bounded(
    pool: Pool, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription_module, "BUFFER", 10)
    slow, quick = hub.subscribe("default"), hub.subscribe("default")
    for start in range(0, 1200, 100):
        await write(pool, hub, *(change("a", start + n + 1) for n in range(100)))
        await take(quick, 100)
    assert slow._count <= 10
    assert await take(slow, 1200) == [("a", n + 1) for n in range(1200)]
    await write(pool, hub, change("a", 1201))
    assert await take(slow, 1) == [("a", 1201)]


async def test_a_stream_resumes_after_its_token(pool: Pool, hub: Hub) -> None:
    first = hub.subscribe("default")
    await write(pool, hub, change("a", 1), change("a", 2))
    await take(first, 2)
    place = ResumeToken(hub.epoch, first.position, first.time)
    await write(pool, hub, change("a", 3))
    await take(first, 1)
    resumed = token.decode(place.encode("q"), "q")
    second = hub.subscribe("default")
    second.rewind(resumed.id, resumed.time)
    await write(pool, hub, change("a", 4))
    assert await take(second, 2) == [("a", 3), ("a", 4)]


async def test_another_replica_continues_where_the_first_one_stopped(pool: Pool, hub: Hub) -> None:
    first = hub.subscribe("default")
    await write(pool, hub, change("a", 1))
    await take(first, 1)
    other = Hub(pool)
    running = asyncio.create_task(other.run())
    await asyncio.wait_for(other.ready(), WAIT)
    try:
        assert other.epoch == hub.epoch
        subscription = other.subscribe("default")
        subscription.rewind(first.position, first.time)
        await write(pool, other, change("a", 2))
        assert await take(subscription, 1) == [("a", 2)]
    finally:
        running.cancel()


async def test_a_lost_connection_of_the_reader_loses_no_change(pool: Pool, hub: Hub) -> None:
    subscription = hub.subscribe("default")
    await write(pool, hub, change("a", 1))
    await take(subscription, 1)
    async with pool.transaction() as tx:
        await tx.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND query LIKE '%%FROM change_log%%'"
        )
    await write(pool, hub, change("a", 2))
    assert await take(subscription, 1) == [("a", 2)]


async def test_a_tenant_has_a_limited_number_of_streams(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "STREAMS_PER_TENANT", 2)
    first = hub.subscribe("default")
    hub.subscribe("default")
    with pytest.raises(StreamLimit):
        hub.subscribe("default")
    hub.subscribe("system")
    hub.unsubscribe(first)
    hub.subscribe("default")


@pytest.mark.parametrize("text", ["", "x", "AAAA", "####", "AQ" * 40])
def test_a_damaged_token_is_rejected(text: str) -> None:
    with pytest.raises(ResumeTokenInvalid):
        token.decode(text, "q")


def test_a_token_of_another_watch_is_rejected() -> None:
    text = ResumeToken(1, 2, datetime.now(UTC)).encode("one query")
    with pytest.raises(ResumeTokenInvalid, match="another watch"):
        token.decode(text, "another query")
