"""Forwards commit notices between replicas by NOTIFY.

Notices are sent in transactions of their own after the commits, many at a time. Nothing depends on them: a
queue watch reads everything again every 30 s, and after every interruption of LISTEN.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterator
from itertools import islice
from typing import Any

import psycopg

from taskyard.errors import TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, PoolOptions, connect_arguments

log = get_log(__name__)

CHANNEL = "taskyard_queue"
# PostgreSQL takes payloads of less than 8000 bytes; ids are ASCII and short.
_ITEMS_PER_PAYLOAD = 20
# More items than this are sent as one notice of "everything".
_LARGEST = 200
_PAUSE_SECONDS = 0.02
# A replica with nothing to send announces itself this often; one that is silent for longer is evicted.
ANNOUNCE_SECONDS = 30.0
EVICT_SECONDS = 4 * ANNOUNCE_SECONDS
_RETRY_SECONDS = 0.5


class Bridge:
    """Sends notices of this replica to the others, and publishes theirs on the bus of this one.

    Replicas announce themselves, so that a single one sends nothing. A replica that finds a new
    peer asks it to read everything, because earlier commits were sent to no one.
    """

    def __init__(self, url: str, pool: Pool, bus: Bus) -> None:
        self._url = url
        self._pool = pool
        self._bus = bus
        self._own = uuid.uuid4().hex[:12]
        self._peers = Peers()
        self._subscription = bus.forward(lambda: self._peers.any(time.monotonic()))
        # What the next announcement carries.
        self._greeting: CommitNotice | None = None

    async def send(self) -> None:
        """Forward notices of this process until cancelled."""
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
                log.debug("notices_not_sent", error=str(error))
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _take(self) -> CommitNotice:
        notice = await self._subscription.take(ANNOUNCE_SECONDS)
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
                log.debug("notices_not_received", error=str(error).strip())
            self._peers.lost()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self) -> None:
        arguments = connect_arguments(self._url, PoolOptions()) | {"autocommit": True}
        connection = await psycopg.AsyncConnection.connect(self._url, **arguments)
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self._peers.found()
            self._bus.receive(CommitNotice(everything=True))
            self._greet()
            async for notice in connection.notifies():
                self._receive(notice.payload)

    def _receive(self, payload: str) -> None:
        sender, notice = decode(payload)
        if sender == self._own:
            return
        if self._peers.note(sender, time.monotonic()):
            notice.everything = True
            self._greet()
        self._bus.receive(notice)

    def _greet(self) -> None:
        self._greeting = CommitNotice(everything=True)
        self._subscription.put(CommitNotice())


class Peers:
    """The replicas seen lately. While this one does not listen, there may always be others."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._listening = False

    def found(self) -> None:
        """Listening begins."""
        self._listening = True

    def lost(self) -> None:
        """Listening has ended."""
        self._listening = False

    def note(self, sender: str, now: float) -> bool:
        """Note that a replica is alive; whether it is new."""
        new = sender not in self._seen
        self._seen[sender] = now
        return new

    def any(self, now: float) -> bool:
        """Whether there may be others."""
        gone = [sender for sender, seen in self._seen.items() if now - seen > EVICT_SECONDS]
        for sender in gone:
            del self._seen[sender]
        return bool(self._seen) or not self._listening


def encode(sender: str, notice: CommitNotice) -> Iterator[str]:
    """The payloads that together carry a notice."""
    items: list[tuple[str, list[Any]]] = [
        *(("lane", list(lane)) for lane in notice.lanes | notice.appended.keys()),
        *(("shrunk", list(lane)) for lane in notice.shrunk - notice.lanes),
        *(("holder", list(key)) for key in notice.holders),
        *(("runner", [runner_id]) for runner_id in notice.runners),
        *(("tenant", [tenant_id]) for tenant_id in notice.tenants),
        *(("settings", [tenant_id]) for tenant_id in notice.settings),
        *([("changed", [])] if notice.changed else ()),
        *([("dependencies", [])] if notice.dependencies else ()),
        *([("limits", [])] if notice.limits else ()),
    ]
    if not notice.everything and len(items) <= _LARGEST:
        # Followers of logs look again on their own: beyond the limit nobody has to read everything.
        items += [("log", list(key)) for key in islice(notice.logs, _LARGEST)]
    else:
        yield json.dumps({"from": sender, "everything": True})
        return
    if not items:
        yield json.dumps({"from": sender})
    for start in range(0, len(items), _ITEMS_PER_PAYLOAD):
        yield json.dumps({"from": sender, "items": items[start : start + _ITEMS_PER_PAYLOAD]})


def decode(payload: str) -> tuple[str, CommitNotice]:
    """Sender and notice of a payload; an unreadable one counts as everything."""
    try:
        message = json.loads(payload)
        notice = CommitNotice(everything=bool(message.get("everything")))
        for kind, values in message.get("items", ()):
            if kind == "lane":
                notice.lanes.add(LaneKey(*values))
            elif kind == "changed":
                notice.changed = True
            elif kind == "dependencies":
                notice.dependencies = True
            elif kind == "limits":
                notice.limits = True
            elif kind == "shrunk":
                notice.shrunk.add(LaneKey(*values))
            elif kind == "holder":
                notice.holders.add((values[0], values[1]))
            elif kind == "log":
                notice.logs.add((values[0], values[1]))
            elif kind in ("runner", "tenant", "settings"):
                named = {"runner": notice.runners, "tenant": notice.tenants, "settings": notice.settings}
                named[kind].add(values[0])
        return str(message["from"]), notice
    except (ValueError, KeyError, TypeError, IndexError):
        return "", CommitNotice(everything=True)
