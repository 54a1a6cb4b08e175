"""pgqueuer on asyncpg and uvloop, which fetches and completes by the thousand."""

# mypy: ignore-errors
# These programs run in an environment of their own, which the checks do not have.

import asyncio

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.queries import Queries
from protocol import CALLERS, main

BATCH_SIZE = 1000


class Peer:
    async def open(self):
        self._pool = await asyncpg.create_pool(min_size=2, max_size=CALLERS)
        self._queries = Queries(AsyncpgPoolDriver(self._pool))

    async def setup(self):
        await self._queries.install()

    async def create_batch(self, size):
        await self._queries.enqueue(["noop"] * size, [None] * size, [0] * size)

    async def create_one(self, created=None):
        await self._queries.enqueue("noop", None if created is None else repr(created).encode())

    async def work(self, handle):
        queue = PgQueuer(AsyncpgPoolDriver(self._pool))

        @queue.entrypoint("noop")
        async def noop(job):
            handle(float(job.payload) if job.payload else None)

        self._worker = asyncio.create_task(queue.run(batch_size=BATCH_SIZE))


uvloop.run(main(Peer()))
