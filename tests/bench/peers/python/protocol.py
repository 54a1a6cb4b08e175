"""What the programs of this folder share: modes, pace and the line of JSON that answers."""

# mypy: ignore-errors
# These programs run in an environment of their own, which the checks do not have.

import asyncio
import json
import os
import sys
import time

BATCH = 1000
IN_FLIGHT = 2
CALLERS = 50
PER_SECOND = 100
WARM_UP = 100


class Seen:
    """Collects what handlers see: the first start, and after how many seconds each job was started."""

    def __init__(self):
        self.first = 0.0
        self._latencies = asyncio.Queue()

    def add(self, created=None):
        now = time.time()
        self.first = self.first or now
        self._latencies.put_nowait(now - (created or now))

    async def collect(self, count):
        return [await self._latencies.get() for _ in range(count)]


async def main(peer):
    """Run the mode that the command line names for a peer: open, setup, create_batch, create_one, work."""
    mode = sys.argv[1]
    await peer.open()
    if mode == "setup":
        await peer.setup()
    else:
        result = await _measure(peer, mode, int(sys.argv[2]))
        print(json.dumps(result), flush=True)
        # Until the caller has read what this process used.
        await asyncio.to_thread(sys.stdin.readline)
    if hasattr(peer, "close"):
        await peer.close()
    # A graceful stop would wait for polls that are under way.
    os._exit(0)


async def _measure(peer, mode, count):
    seen = Seen()
    if mode == "batch":
        await peer.create_batch(BATCH)
        await announce()
        return {"seconds": await _repeat(count // BATCH, IN_FLIGHT, lambda: peer.create_batch(BATCH))}
    if mode == "single":
        await _repeat(WARM_UP, CALLERS, peer.create_one)
        await announce()
        return {"seconds": await _repeat(count, CALLERS, peer.create_one)}
    if mode == "drain":
        if hasattr(peer, "prepare"):
            await peer.prepare()
        await announce()
        await peer.work(seen.add)
        await seen.collect(count)
        if hasattr(peer, "finished"):
            await peer.finished(count)
        return {"first": seen.first, "last": time.time()}
    await peer.work(seen.add)
    await _paced(peer, seen, WARM_UP)
    await announce()
    return {"latencies": await _paced(peer, seen, count)}


async def announce():
    """Wait until the caller has taken its readings."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


async def _repeat(calls, callers, call):
    left = calls

    async def send():
        nonlocal left
        while left > 0:
            left -= 1
            await call()

    start = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(callers)))
    return time.perf_counter() - start


async def _paced(peer, seen, count):
    start = time.monotonic()
    calls = []
    for n in range(count):
        await asyncio.sleep(max(0.0, start + n / PER_SECOND - time.monotonic()))
        calls.append(asyncio.ensure_future(peer.create_one(time.time())))
    await asyncio.gather(*calls)
    return await seen.collect(count)
