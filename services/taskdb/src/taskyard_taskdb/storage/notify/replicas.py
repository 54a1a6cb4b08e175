"""News of lanes and holders between the replicas, by NOTIFY.

Sent in transactions of their own after the commits they tell of, many at a time. Nothing depends on them: a
watch reads everything again every 30 s, and whenever the bridge has been down.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg

from taskyard.errors import TaskyardError
from taskyard_taskdb.storage.claim.lane import LaneKey
from taskyard_taskdb.storage.notify.bus import Bus
from taskyard_taskdb.storage.notify.notice import CommitNotice
from taskyard_taskdb.storage.pool import Pool, PoolOptions, connect_arguments

logger = logging.getLogger(__name__)

CHANNEL = "taskyard_queue"
# PostgreSQL takes payloads of less than 8000 bytes; ids are ASCII and short.
_ITEMS_PER_PAYLOAD = 20
# What would take more payloads than this is told as "everything".
_LARGEST = 200
_PAUSE_SECONDS = 0.02
# A replica that has nothing else to say says that it is there; one that is silent for longer is forgotten.
ANNOUNCE_SECONDS = 30.0
FORGET_SECONDS = 4 * ANNOUNCE_SECONDS
_RETRY_SECONDS = 0.5


class Bridge:
    """Tells the other replicas what this one has committed, and the lanes of this one what they have.

    Replicas announce themselves, so that one without others has nothing to send. Whoever hears of a new one
    asks it to read everything: what was committed before they knew of each other was sent to nobody.
    """

    def __init__(self, url: str, pool: Pool, bus: Bus) -> None:
        self._url = url
        self._pool = pool
        self._bus = bus
        self._own = uuid.uuid4().hex[:12]
        self._peers = Peers()
        self._inbox = lanes.forward(lambda: self._peers.any(time.monotonic()))
        # What to announce besides that this one is there.
        self._greeting: CommitNotice | None = None

    async def send(self) -> None:
        """Forward what is told here until cancelled."""
        while True:
            notice = await self._take()
            if self._greeting is None and not self._peers.any(time.monotonic()):
                continue
            if self._greeting is not None:
                notice.add(self._greeting)
                self._greeting = None
            try:
                async with self._pool.reading() as tx:
                    for payload in encode(self._own, notice):
                        await tx.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
            except (TaskyardError, psycopg.Error) as error:
                logger.info("other replicas were not told: %s", error)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _take(self) -> CommitNotice:
        notice = await self._inbox.take(ANNOUNCE_SECONDS)
        if notice is None:
            self._greeting = self._greeting or CommitNotice()
            return CommitNotice()
        return notice

    async def receive(self) -> None:
        """Listen until cancelled; after an interruption everything counts as changed."""
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError) as error:
                logger.info("not listening to other replicas: %s", str(error).strip())
            self._peers.lost()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self) -> None:
        arguments = connect_arguments(PoolOptions()) | {"autocommit": True}
        connection = await psycopg.AsyncConnection.connect(self._url, **arguments)
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self._peers.found()
            self._bus.receive(CommitNotice(everything=True))
            self._greet()
            async for notice in connection.notifies():
                self._hear(notice.payload)

    def _hear(self, payload: str) -> None:
        sender, notice = decode(payload)
        if sender == self._own:
            return
        if self._peers.hear(sender, time.monotonic()):
            notice.everything = True
            self._greet()
        self._bus.receive(notice)

    def _greet(self) -> None:
        self._greeting = CommitNotice(everything=True)
        self._inbox.put(CommitNotice())


class Peers:
    """The replicas that were heard of lately. Who does not listen cannot know that there are none."""

    def __init__(self) -> None:
        self._heard: dict[str, float] = {}
        self._listening = False

    def found(self) -> None:
        """Listening begins."""
        self._listening = True

    def lost(self) -> None:
        """Listening has ended."""
        self._listening = False

    def hear(self, sender: str, now: float) -> bool:
        """Note a sign of a replica; whether it is a new one."""
        new = sender not in self._heard
        self._heard[sender] = now
        return new

    def any(self, now: float) -> bool:
        """Whether there may be others."""
        gone = [sender for sender, heard in self._heard.items() if now - heard > FORGET_SECONDS]
        for sender in gone:
            del self._heard[sender]
        return bool(self._heard) or not self._listening


def encode(sender: str, notice: CommitNotice) -> Iterator[str]:
    """Payloads that together say the news."""
    items: list[tuple[str, list[Any]]] = [
        *(("lane", list(lane)) for lane in notice.lanes | notice.appended.keys()),
        *(("faded", list(lane)) for lane in notice.shrunk - notice.lanes),
        *(("holder", list(key)) for key in notice.holders),
        *(("runner", [runner_id]) for runner_id in notice.runners),
        *(("tenant", [tenant_id]) for tenant_id in notice.tenants),
        *(("settings", [tenant_id]) for tenant_id in notice.settings),
        *([("stirred", [])] if notice.changed else ()),
    ]
    if notice.everything or len(items) > _LARGEST:
        yield json.dumps({"from": sender, "everything": True})
        return
    if not items:
        yield json.dumps({"from": sender})
    for start in range(0, len(items), _ITEMS_PER_PAYLOAD):
        yield json.dumps({"from": sender, "items": items[start : start + _ITEMS_PER_PAYLOAD]})


def decode(payload: str) -> tuple[str, CommitNotice]:
    """Sender and news of a payload; what cannot be read says that something has changed."""
    try:
        told = json.loads(payload)
        notice = CommitNotice(everything=bool(told.get("everything")))
        for kind, values in told.get("items", ()):
            if kind == "lane":
                notice.lanes.add(LaneKey(*values))
            elif kind == "stirred":
                notice.changed = True
            elif kind == "faded":
                notice.shrunk.add(LaneKey(*values))
            elif kind == "holder":
                notice.holders.add((values[0], values[1]))
            elif kind in ("runner", "tenant", "settings"):
                named = {"runner": notice.runners, "tenant": notice.tenants, "settings": notice.settings}
                named[kind].add(values[0])
        return str(told["from"]), notice
    except (ValueError, KeyError, TypeError, IndexError):
        return "", CommitNotice(everything=True)
