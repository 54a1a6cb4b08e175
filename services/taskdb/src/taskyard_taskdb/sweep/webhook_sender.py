"""Signs and sends webhooks: at least once, in order per task; a receiver that is down delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Protocol
from urllib.parse import urlsplit

from taskyard.errors import NotFound, TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.domain import webhook
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.read.tasks import TaskRecord
from taskyard_taskdb.storage.webhook import outbox as webhook_outbox
from taskyard_taskdb.storage.webhook.outbox import Call
from taskyard_taskdb.sweep.leader_election import Leadership

log = get_log(__name__)

PAGE = 200
# The pause between two polls, and the poll interval while nothing is due and nothing is committed.
PAUSE_SECONDS = 0.5
POLL_SECONDS = 20.0
# How long a receiver is served at a time, and how long calls to a busy receiver are postponed.
TURN_SECONDS = 30.0
BUSY_DELAY = timedelta(seconds=5)
# Receivers of one tenant that are called at a time: slow ones do not take the connections of other tenants.
RECEIVERS_PER_TENANT = 8
GIVE_UP_AGE = timedelta(days=3)
_GONE = 410


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """An HTTP request to a receiver; without its signature until it is sent."""

    url: str
    headers: dict[str, str]
    body: bytes


class Unreachable(Exception):
    """The receiver did not answer: it is down, too slow, or at an address that webhooks may not reach."""


class Post(Protocol):
    """Sends a request; returns the HTTP status of the response. Raises Unreachable."""

    async def __call__(self, request: WebhookRequest) -> int: ...


Receiver = tuple[str, str]
"""Tenant, and scheme with host and port: tenants that share a host do not wait for each other."""
Render = Callable[[TaskRecord], WebhookRequest]
OnOutcome = Callable[[str], None]
"""Called with the outcome of each call: delivered, failed or given_up."""


class WebhookSender:
    """Sends due webhooks while this replica leads, one call per tenant and receiver at a time."""

    def __init__(
        self,
        pool: Pool,
        render: Render,
        post: Post,
        on_outcome: OnOutcome = lambda outcome: None,
        give_up_age: timedelta = GIVE_UP_AGE,
    ) -> None:
        self._pool = pool
        self._render = render
        self._post = post
        self._on_outcome = on_outcome
        self._give_up_age = give_up_age
        self._rng = Random()
        self._turns: dict[Receiver, asyncio.Task[None]] = {}
        self._in_flight: set[int] = set()
        self._committed = asyncio.Event()

    def notify_commit(self) -> None:
        """Record a commit, which may have stored webhooks."""
        self._committed.set()

    async def run(self, leadership: Leadership) -> None:
        """Deliver due webhooks while this replica leads, until cancelled."""
        try:
            while True:
                await asyncio.sleep(PAUSE_SECONDS)
                self._committed.clear()
                wait = await self._begin_turns(leadership) if leadership.held else PAUSE_SECONDS
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._committed.wait()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Cancel the turns; the next leader repeats calls without a response."""
        turns = list(self._turns.values())
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)

    async def deliver_due(self, leadership: Leadership) -> None:
        """Deliver the webhooks that are due now, and wait for the responses."""
        await self._begin_turns(leadership)
        await asyncio.gather(*self._turns.values())

    async def _begin_turns(self, leadership: Leadership) -> float:
        """Start delivering due webhooks; returns the seconds until the next poll."""
        try:
            async with self._pool.reading() as tx:
                ahead = await webhook_outbox.next_due(tx)
                if ahead is None or ahead > 0:
                    return POLL_SECONDS if ahead is None else min(ahead, POLL_SECONDS)
                found = await webhook_outbox.read_due(tx, sorted(self._in_flight), PAGE)
            busy = []
            groups, broken = self._by_receiver(found)
            for call, error in broken:
                await self._failed(leadership, call, f"the task cannot be shown as JSON: {error}")
            for receiver, group in groups.items():
                called = sum(tenant_id == receiver[0] for tenant_id, _ in self._turns)
                if receiver in self._turns or called >= RECEIVERS_PER_TENANT:
                    busy += [call.id for call, _ in group]
                    continue
                self._in_flight.update(call.id for call, _ in group)
                self._turns[receiver] = asyncio.create_task(self._turn(leadership, receiver, group))
            if busy:
                # Postponed, so that the next page has calls of other receivers.
                await self._postpone(leadership, busy, BUSY_DELAY)
        except (TaskyardError, LeadershipLost) as error:
            log.failure("webhooks_postponed", error)
        return 0.0

    def _by_receiver(
        self, found: Sequence[Call]
    ) -> tuple[dict[Receiver, list[tuple[Call, WebhookRequest]]], list[tuple[Call, Exception]]]:
        """Return the requests of each receiver, and the calls whose task cannot be rendered."""
        groups: dict[Receiver, list[tuple[Call, WebhookRequest]]] = {}
        broken: list[tuple[Call, Exception]] = []
        for call in found:
            try:
                request = self._render(call.task)
                parts = urlsplit(request.url)
            except Exception as error:
                # A row that an older version stored; it must not delay the calls of other tasks.
                log.exception("webhook_unrenderable", task=call.task.name)
                broken.append((call, error))
                continue
            receiver = (call.task.tenant_id, f"{parts.scheme}://{parts.netloc}".lower())
            groups.setdefault(receiver, []).append((call, request))
        return groups, broken

    async def _turn(
        self, leadership: Leadership, receiver: Receiver, group: Sequence[tuple[Call, WebhookRequest]]
    ) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + TURN_SECONDS
        try:
            for place, (call, request) in enumerate(group):
                if loop.time() >= end or not leadership.held:
                    break
                delay = await self._send(leadership, call, request)
                if delay is not None:
                    rest = [later.id for later, _ in group[place + 1 :]]
                    await self._postpone(leadership, rest, delay)
                    break
        except (TaskyardError, LeadershipLost) as error:
            log.info("webhook_turn_ended", receiver=receiver[1], error=str(error))
        except Exception:
            # A failure of one receiver must not stop the others; its calls stay due.
            log.exception("webhook_turn_failed", receiver=receiver[1])
        finally:
            self._in_flight.difference_update(call.id for call, _ in group)
            self._turns.pop(receiver, None)

    async def _send(self, leadership: Leadership, call: Call, request: WebhookRequest) -> timedelta | None:
        """Make one call; returns how long to postpone the receiver if it did not respond."""
        try:
            signed = await self._sign(call, request)
        except NotFound:
            # The tenant was deleted, and with it the secret to sign with.
            await self._write(leadership, lambda tx: webhook_outbox.delete_call(tx, call))
            return None
        try:
            status = await self._post(signed)
        except Unreachable as error:
            return await self._failed(leadership, call, str(error))
        if 200 <= status < 300:
            await self._write(leadership, lambda tx: webhook_outbox.delete_call(tx, call))
            self._on_outcome("delivered")
        elif status == _GONE:
            await self._give_up(leadership, call, "the receiver answered 410 Gone")
        else:
            hint = "; redirects are not followed" if 300 <= status < 400 else ""
            await self._failed(leadership, call, f"the receiver answered {status}{hint}")
        return None

    async def _sign(self, call: Call, request: WebhookRequest) -> WebhookRequest:
        task = call.task
        found = await self._pool.run(lambda tx: webhook_outbox.signing_secrets(tx, task.tenant_id))
        # Every repeat has the same id, so that a receiver can recognise it.
        call_id, now = f"{task.uid}.{task.version}", datetime.now(UTC)
        headers = {
            **request.headers,
            "webhook-id": call_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": webhook.signatures(found.values, call_id, now, request.body),
        }
        return WebhookRequest(request.url, headers, request.body)

    async def _failed(self, leadership: Leadership, call: Call, error: str) -> timedelta:
        delay = webhook.delay(call.attempt + 1, self._rng)
        if datetime.now(UTC) - call.create_time >= self._give_up_age:
            await self._give_up(leadership, call, error)
            return delay
        log.info("webhook_failed", task=call.task.name, attempt=call.attempt + 1, error=error)
        await self._write(leadership, lambda tx: webhook_outbox.retry_later(tx, call, delay, error))
        self._on_outcome("failed")
        return delay

    async def _give_up(self, leadership: Leadership, call: Call, error: str) -> None:
        log.warning("webhook_abandoned", task=call.task.name, error=error)
        await self._write(leadership, lambda tx: webhook_outbox.give_up(tx, call, error))
        self._on_outcome("given_up")

    async def _postpone(self, leadership: Leadership, ids: Sequence[int], delay: timedelta) -> None:
        await self._write(leadership, lambda tx: webhook_outbox.postpone(tx, ids, delay))

    async def _write(self, leadership: Leadership, work: Callable[[Tx], Awaitable[object]]) -> None:
        async def checked(tx: Tx) -> None:
            await leadership.check(tx)
            await work(tx)

        await self._pool.run(checked)
