"""Followers of task logs: wakes their streams when this or another replica has stored more lines."""

import asyncio
import contextvars
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from taskyard.errors import TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.report import run_logs
from taskyard_taskdb.watch.hub import Hub
from taskyard_taskdb.watch.subscription import Subscription, TaskKey

log = get_log(__name__)

# Every replica publishes a notice of the lines that it stores; a lost notice is made up for after this time.
POLL_SECONDS = 2.0


class LogFollowers:
    """The tasks whose logs are followed on this replica; one query polls all of them."""

    def __init__(self, pool: Pool, hub: Hub) -> None:
        self._pool = pool
        self._hub = hub
        self._followed: Counter[TaskKey] = Counter()
        self._seen: dict[TaskKey, tuple[int, int]] = {}
        self._poller: asyncio.Task[None] | None = None

    @contextmanager
    def follow(self, key: TaskKey) -> Iterator[Subscription]:
        """Yield a subscription that wakes with changes of the task and with growth of its logs."""
        subscription = self._hub.subscribe(key[0], frozenset({key}))
        self._followed[key] += 1
        if self._poller is None:
            # It reads for all tenants, not for the one whose call starts it.
            self._poller = asyncio.create_task(self._poll(), context=contextvars.Context())
        try:
            yield subscription
        finally:
            self._hub.unsubscribe(subscription)
            self._followed[key] -= 1
            if not self._followed[key]:
                del self._followed[key]
                self._seen.pop(key, None)

    def stored(self, notice: CommitNotice) -> None:
        """Wake the followers of tasks whose logs have grown; all of them after a notice of everything."""
        for key in list(self._followed) if notice.everything else notice.logs & self._followed.keys():
            self._hub.wake_task(key)

    async def _poll(self) -> None:
        while self._followed:
            try:
                async with self._pool.reading() as tx:
                    ends = await run_logs.ends(tx, list(self._followed))
            except TaskyardError as error:  # the database may be back at the next poll
                log.failure("log_poll_failed", error)
                ends = {}
            for key, end in ends.items():
                if self._seen.get(key) != end and key in self._followed:
                    self._seen[key] = end
                    self._hub.wake_task(key)
            await asyncio.sleep(POLL_SECONDS)
        self._poller = None
