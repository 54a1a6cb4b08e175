"""Webhooks: written with the transition, delivered at least once, in order, signed, and never sent inside."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task, run_taskdb
from taskyard.errors import FieldInvalid
from taskyard.v1 import admin_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.egress import Address, Egress
from taskyard_taskdb.domain.event import RetryRequested
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.webhook import show_secret
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.rpc.callbacks import letter
from taskyard_taskdb.storage import webhooks
from taskyard_taskdb.sweep.leader import Office
from taskyard_taskdb.sweep.webhooks import Letter, Unreachable, WebhookSender
from taskyard_taskdb.webhook_client import WebhookClient, resolve

OUTAGE_SECONDS = float(os.environ.get("TASKYARD_WEBHOOK_OUTAGE", "2"))


@dataclass
class Received:
    """One request as a receiver got it."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def task(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """An HTTP server; `answer` says with which status it answers, None for not at all."""

    answer: Callable[[Received], int | None] = lambda request: 204
    location: str = ""
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    arrival: asyncio.Condition = field(default_factory=asyncio.Condition)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def holds(self, count: int) -> None:
        """Return once so many requests have come."""
        async with self.arrival:
            await self.arrival.wait_for(lambda: len(self.requests) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            headers = dict(
                line.lower().split(": ", 1)[:1] + line.split(": ", 1)[1:] for line in head[1:] if line
            )
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            received = Received(head[0].split()[1], headers, body)
            status = self.answer(received)
            if status is None:
                await reader.read()
            else:
                self.requests.append(received)
                async with self.arrival:
                    self.arrival.notify_all()
                moved = f"location: {self.location}\r\n" if self.location else ""
                writer.write(f"HTTP/1.1 {status} X\r\n{moved}content-length: 0\r\n\r\n".encode())
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def receiving(receiver: Receiver, host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    server = await asyncio.start_server(receiver._serve, host, receiver.port)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving(Receiver()) as made:
        yield made


@pytest.fixture
async def quiet(database_url: str) -> AsyncIterator[RunningTaskDb]:
    """A taskdb that leaves housekeeping to the test, and lets webhooks reach loopback."""
    async for running in run_taskdb(database_url, housekeeping=False, webhook_networks="127.0.0.0/8"):
        yield running


@pytest.fixture
async def caller(quiet: RunningTaskDb) -> Caller:
    return await quiet.caller()


@pytest.fixture
async def office(quiet: RunningTaskDb) -> Office:
    office = Office(quiet.pool, timedelta(0))
    assert await office.seek()
    return office


@pytest.fixture
async def sender(quiet: RunningTaskDb) -> AsyncIterator[WebhookSender]:
    client = WebhookClient(Egress.parse("127.0.0.0/8"), 2.0)
    yield WebhookSender(quiet.pool, lambda record: Letter(*letter(record)), client)
    await client.close()


async def ended(quiet: RunningTaskDb, caller: Caller, url: str, **callback: Any) -> str:
    """A task with a callback that a runner has completed."""
    task = await caller.create(callback=task_pb2.Callback(url=url, **callback))
    await quiet.succeed(task.name)
    return task.name


async def make_due(quiet: RunningTaskDb) -> None:
    async with quiet.pool.transaction() as tx:
        await tx.execute("UPDATE webhooks SET due_time = now() - interval '1 s'")


def documented_recipe() -> Callable[[str, dict[str, str], bytes], bool]:
    """The function that docs/howto/webhooks.md gives to receivers."""
    page = (Path(__file__).parents[4] / "docs/howto/webhooks.md").read_text()
    scope: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], scope)
    recipe: Callable[[str, dict[str, str], bytes], bool] = scope["is_genuine"]
    return recipe


@pytest.mark.seed("S0.9")
async def test_the_end_of_a_task_is_told_and_signed_as_documented(
    quiet: RunningTaskDb, caller: Caller, office: Office, sender: WebhookSender, receiver: Receiver
) -> None:
    name = await ended(quiet, caller, receiver.url("/done?x=1"), headers={"X-Team": "blue"})
    await sender.deliver_due(office)
    (request,) = receiver.requests
    assert request.path == "/done?x=1"
    assert request.headers["x-team"] == "blue" and request.headers["taskyard-event"] == "task.succeeded"
    assert request.task["name"] == name and request.task["status"]["phase"] == "TASK_PHASE_SUCCEEDED"
    assert "callback" not in request.task["spec"]
    assert not await quiet.rows("SELECT FROM webhooks")

    found = await quiet.pool.run(lambda tx: webhooks.signing_secrets(tx, "default"))
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.new(found.values[0], signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    genuine, secret = documented_recipe(), show_secret(found.values[0])
    assert genuine(secret, headers, request.body)
    assert not genuine(secret, headers, request.body + b" ")
    assert not genuine(show_secret(b"x" * 32), headers, request.body)
    assert not genuine(secret, {**headers, "webhook-timestamp": "1"}, request.body)


async def test_after_a_rotation_both_secrets_sign(
    quiet: RunningTaskDb, caller: Caller, office: Office, sender: WebhookSender, receiver: Receiver
) -> None:
    old = await quiet.pool.run(lambda tx: webhooks.signing_secrets(tx, "default"))
    new = await quiet.pool.run(lambda tx: webhooks.signing_secrets(tx, "default", rotate=True))
    assert new.values == (new.values[0], old.values[0]) and new.values[0] != old.values[0]
    await ended(quiet, caller, receiver.url())
    await sender.deliver_due(office)
    assert receiver.requests[0].headers["webhook-signature"].count("v1,") == 2


async def test_a_receiver_that_was_down_gets_everything_in_order_per_task(
    quiet: RunningTaskDb, caller: Caller, office: Office, sender: WebhookSender
) -> None:
    async with receiving(Receiver()) as probe:
        port = probe.port
    retry = lambda task, now: RetryRequested(actor=Actor(ActorType.USER, "me"))  # noqa: E731
    task = await caller.create(callback=task_pb2.Callback(url=f"http://127.0.0.1:{port}/"))
    for _ in range(2):
        await quiet.fail(task.name)
        await quiet.apply(task.name, retry)
    await quiet.succeed(task.name)
    for _ in range(3):
        await sender.deliver_due(office)
        await make_due(quiet)
    ((count, attempts, error),) = await quiet.rows(
        "SELECT count(*), max(attempt), max(last_error) FROM webhooks"
    )
    assert (count, attempts) == (3, 3) and "Connect" in error
    async with receiving(Receiver(port=port)) as receiver:
        while await quiet.rows("SELECT FROM webhooks"):
            await make_due(quiet)
            await sender.deliver_due(office)
    phases = [request.task["status"]["phase"] for request in receiver.requests]
    assert phases == ["TASK_PHASE_FAILED", "TASK_PHASE_FAILED", "TASK_PHASE_SUCCEEDED"]
    versions = [int(request.task["metadata"]["resourceVersion"]) for request in receiver.requests]
    assert versions == sorted(versions) and len(set(versions)) == 3


async def test_a_receiver_that_is_stopped_for_a_while_gets_everything_once_it_is_back(
    database_url: str,
) -> None:
    """The leader sends, and its own waits pass; `make webhooks` stops the receiver for a minute."""
    tasks, events = 20, ["TASK_PHASE_FAILED", "TASK_PHASE_CANCELLED"]
    genuine = documented_recipe()
    async for running in run_taskdb(database_url, webhook_networks="127.0.0.0/8"):
        caller = await running.caller()
        request = admin_service_pb2.GetWebhookSecretRequest(parent="tenants/default")
        secret = (await caller.admin.GetWebhookSecret(request)).secret
        async with receiving(Receiver()) as before:
            await ended(running, caller, before.url())
            await before.holds(1)
        stopped = time.monotonic()
        for _ in range(tasks):
            task = await caller.create(callback=task_pb2.Callback(url=before.url()))
            await running.fail(task.name)
            await caller.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=task.name))
            await caller.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=task.name))
        await asyncio.sleep(max(0.0, stopped + OUTAGE_SECONDS - time.monotonic()))
        assert await running.rows("SELECT count(*), max(attempt) > 0 FROM webhooks") == [(2 * tasks, True)]
        back = time.monotonic()
        async with receiving(Receiver(port=before.port)) as receiver:
            # Waits double from 2 s on: the next attempt comes within as long as the outage was, about.
            async with asyncio.timeout(30 + 2 * OUTAGE_SECONDS):
                await receiver.holds(2 * tasks)
            print(f"down for {back - stopped:.1f} s, all delivered {time.monotonic() - back:.1f} s after it")
    told: dict[str, list[dict[str, Any]]] = {}
    for received in receiver.requests:
        assert genuine(secret, received.headers, received.body)
        told.setdefault(received.task["name"], []).append(received.task)
    assert len(told) == tasks
    for calls in told.values():
        assert [call["status"]["phase"] for call in calls] == events
        first, second = (int(call["metadata"]["resourceVersion"]) for call in calls)
        assert first < second


async def test_an_answer_that_is_no_success_is_asked_again_with_the_same_id(
    quiet: RunningTaskDb, caller: Caller, office: Office, sender: WebhookSender, receiver: Receiver
) -> None:
    statuses = iter((500, 404, 200))
    receiver.answer = lambda request: next(statuses)
    await ended(quiet, caller, receiver.url())
    for _ in range(3):
        await sender.deliver_due(office)
        await make_due(quiet)
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert len(receiver.requests) == 3 and not await quiet.rows("SELECT FROM webhooks")


async def test_a_receiver_that_hangs_holds_up_nobody_else(
    quiet: RunningTaskDb, caller: Caller, office: Office, sender: WebhookSender, receiver: Receiver
) -> None:
    async with receiving(Receiver(answer=lambda request: None)) as hanging:
        for _ in range(5):
            await ended(quiet, caller, hanging.url())
        name = await ended(quiet, caller, receiver.url())
        async with asyncio.timeout(30):
            await sender.deliver_due(office)
        assert [request.task["name"] for request in receiver.requests] == [name]
        # One call found out that it does not answer; the others were put off with it.
        assert hanging.connections == 1
    ((count, attempts),) = await quiet.rows(
        "SELECT count(*), sum(attempt) FROM webhooks WHERE due_time > now()"
    )
    assert (count, attempts) == (5, 1)


async def test_what_was_not_acknowledged_is_sent_again_by_the_next_leader(
    quiet: RunningTaskDb, caller: Caller, sender: WebhookSender, receiver: Receiver
) -> None:
    first, second = Office(quiet.pool, timedelta(0)), Office(quiet.pool, timedelta(0))
    assert await first.seek()
    async with quiet.pool.transaction() as tx:
        await tx.execute("UPDATE coordinator_state SET expires_at = now()")
    assert await second.seek()
    await ended(quiet, caller, receiver.url())
    # It does not know yet that it is no leader: the call is made, but not forgotten.
    await sender.deliver_due(first)
    assert len(receiver.requests) == 1 and await quiet.rows("SELECT FROM webhooks")
    await sender.deliver_due(second)
    assert len(receiver.requests) == 2 and not await quiet.rows("SELECT FROM webhooks")
    assert receiver.requests[0].body == receiver.requests[1].body


async def test_deleting_the_task_does_not_take_its_webhook_back(
    quiet: RunningTaskDb, caller: Caller, office: Office, sender: WebhookSender, receiver: Receiver
) -> None:
    name = await ended(quiet, caller, receiver.url())
    await caller.tasks.DeleteTask(task_service_pb2.DeleteTaskRequest(name=name))
    await sender.deliver_due(office)
    assert receiver.requests[0].task["name"] == name


async def test_a_call_is_given_up_after_days_or_when_the_receiver_is_gone(
    quiet: RunningTaskDb, caller: Caller, office: Office, sender: WebhookSender, receiver: Receiver
) -> None:
    receiver.answer = lambda request: 410 if request.path == "/gone" else 500
    await ended(quiet, caller, receiver.url("/gone"))
    await ended(quiet, caller, receiver.url("/old"))
    async with quiet.pool.transaction() as tx:
        await tx.execute("UPDATE webhooks SET create_time = now() - interval '4 days'")
    await sender.deliver_due(office)
    assert len(receiver.requests) == 2 and not await quiet.rows("SELECT FROM webhooks")


INTERNAL = (
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://localhost:8080/",
    "http://api.localhost/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data",
    "http://100.64.0.1/",
    "http://0.0.0.0/",
    "http://224.0.0.1/",
    "http://user:secret@example.com/",
    "http://example.com:0/",
    "http://[1::/",
    "http://exa mple.com/",
    "ftp://example.com/",
)


@pytest.mark.seed("S0.79")
async def test_a_webhook_to_an_internal_address_is_refused_with_the_field(
    taskdb: RunningTaskDb, tenant: Caller
) -> None:
    for url in INTERNAL:
        with pytest.raises(FieldInvalid) as refused:
            await tenant.create(callback=task_pb2.Callback(url=url))
        assert refused.value.violations[0].field == "task.spec.callback.url", url
    task = await tenant.create(callback=task_pb2.Callback(url="https://hooks.example.com/done"))
    request = task_service_pb2.UpdateTaskRequest(task=task_pb2.Task(name=task.name))
    request.task.spec.callback.url = "http://127.0.0.1/"
    with pytest.raises(FieldInvalid):
        await tenant.tasks.UpdateTask(request)
    for header in ({"Host": "x"}, {"a b": "x"}, {"x": "a\r\nb: c"}, {"webhook-id": "1"}):
        callback = task_pb2.Callback(url="https://hooks.example.com/", headers=header)
        with pytest.raises(FieldInvalid, match=r"headers\["):
            await tenant.tasks.CreateTask(new_task(callback=callback))


async def test_whatever_a_name_resolves_to_the_canary_is_never_reached() -> None:
    """Loopback, IPv6, decimal addresses, redirects and a name that changes its mind."""
    async with receiving(Receiver()) as canary, receiving(Receiver(port=canary.port), "::1") as canary6:
        answers: list[list[Address]] = []

        async def lie(host: str, port: int) -> list[Address]:
            return answers.pop(0)

        closed = WebhookClient(Egress(), 2.0)
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]"):
            with pytest.raises(Unreachable, match=r"no webhook may go|cannot be resolved|URL"):
                await closed(Letter(canary.url(host=host), {}, b""))
        lying = WebhookClient(Egress(), 2.0, lie)
        answers[:] = [[ip_address("127.0.0.1")], [ip_address("::1"), ip_address("10.1.1.1")]]
        for _ in range(2):
            with pytest.raises(Unreachable, match="no webhook may go"):
                await lying(Letter(canary.url(host="rebind.example.com"), {}, b""))
        # Checked and dialled are one answer: the second one, which leads to the canary, is never asked for.
        answers[:] = [[ip_address("127.0.0.2")], [ip_address("127.0.0.1")]]
        async with receiving(Receiver(port=canary.port, location=canary.url()), "127.0.0.2") as allowed:
            once = WebhookClient(Egress.parse("127.0.0.2/32"), 2.0, lie)
            allowed.answer = lambda request: 302
            assert await once(Letter(canary.url(host="rebind.example.com"), {}, b"{}")) == 302
            assert len(answers) == 1 and len(allowed.requests) == 1
            await once.close()
        assert (canary.connections, canary6.connections) == (0, 0)
        # They are alive: who may reach them does.
        permitted = WebhookClient(Egress.parse("127.0.0.1/32,::1/128"), 2.0)
        for host in ("127.0.0.1", "2130706433", "[::1]"):
            assert await permitted(Letter(canary.url(host=host), {}, b"")) == 204
        assert (canary.connections, canary6.connections) == (2, 1)
        for client in (closed, lying, permitted):
            await client.close()


async def test_the_system_resolver_is_asked_for_numbers_as_well() -> None:
    assert await resolve("2130706433", 80) == [ip_address("127.0.0.1")]
    assert not Egress().choose(await resolve("localhost", 80))
