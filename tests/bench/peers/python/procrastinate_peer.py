"""procrastinate with a hundred jobs at a time."""

# mypy: ignore-errors
# These programs run in an environment of their own, which the checks do not have.

import asyncio
import logging

import uvloop
from procrastinate import App, PsycopgConnector
from protocol import CALLERS, main

CONCURRENCY = 100
# It warns of an app in the main module, which only an import by name would need otherwise.
logging.getLogger("procrastinate").setLevel(logging.ERROR)


class Peer:
    def __init__(self):
        self._handle = None
        # Its own default of ten connections would hold back the callers.
        self._app = App(connector=PsycopgConnector(min_size=2, max_size=CALLERS))

        @self._app.task(name="noop")
        async def noop(created=None):
            self._handle(created)

        self._noop = noop

    async def open(self):
        await self._app.open_async()

    async def setup(self):
        await self._app.schema_manager.apply_schema_async()

    async def create_batch(self, size):
        await self._noop.batch_defer_async(*({} for _ in range(size)))

    async def create_one(self, created=None):
        await self._noop.defer_async(**({} if created is None else {"created": created}))

    async def work(self, handle):
        self._handle = handle
        options = {"concurrency": CONCURRENCY, "install_signal_handlers": False}
        self._worker = asyncio.create_task(self._app.run_worker_async(**options))


uvloop.run(main(Peer()))
