"""Celery on Redis, which keeps what it was sent; a worker with two processes that acknowledges late."""

# mypy: ignore-errors
# These programs run in an environment of their own, which the checks do not have.

import asyncio
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from celery import Celery
from protocol import CALLERS, main

BROKER = os.environ["PEER_REDIS"]
PIPE = "PEER_PIPE"
READY_SECONDS = 60
app = Celery("peer", broker=f"redis+socket://{BROKER}", backend=f"redis+socket://{BROKER}?virtual_host=1")
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=100,
    broker_pool_limit=CALLERS,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(created=None):
    os.write(int(os.environ[PIPE]), b"%r\n" % (created or 0.0))


class Peer:
    async def open(self):
        self._worker = None
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CALLERS + 1))

    async def close(self):
        if self._worker is not None:
            self._worker.terminate()
            await self._worker.wait()

    async def setup(self):
        app.backend.client.flushall()

    async def create_batch(self, size):
        # It has none: one by one, over one connection.
        with app.producer_pool.acquire(block=True) as producer:
            for _ in range(size):
                noop.apply_async(producer=producer)
                await asyncio.sleep(0)

    async def create_one(self, created=None):
        await asyncio.to_thread(noop.apply_async, (created,))

    async def prepare(self):
        """Start the worker, which consumes nothing yet."""
        reader, writer = os.pipe()
        self._pipe = os.fdopen(reader, "rb")
        command = ["worker", "-c", "2", "-Q", "nothing", "--without-gossip", "--without-mingle"]
        self._worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            f"import celery_peer; celery_peer.app.worker_main({command!r})",
            cwd=os.path.dirname(os.path.abspath(__file__)),
            env={**os.environ, PIPE: str(writer)},
            pass_fds=[writer],
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        os.close(writer)
        deadline = time.monotonic() + READY_SECONDS
        while not await asyncio.to_thread(app.control.ping, timeout=0.5):
            if self._worker.returncode is not None or time.monotonic() > deadline:
                raise TimeoutError("the worker of Celery does not answer")

    async def work(self, handle):
        if self._worker is None:
            await self.prepare()
        self._reading = asyncio.create_task(self._read(handle))
        await asyncio.to_thread(app.control.add_consumer, "celery")

    async def _read(self, handle):
        stream = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), self._pipe)
        try:
            while line := await stream.readline():
                handle(float(line) or None)
        finally:
            transport.close()

    async def finished(self, count):
        """Wait until the results of so many tasks are stored."""
        await asyncio.to_thread(self._poll, count)

    def _poll(self, count):
        while app.backend.client.dbsize() < count:
            time.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(Peer()))
