"""Webhooks: stored with the transition, signed, and delivered at least once and in order."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct

from services.taskdb.tests.conftest import Caller, RunningTaskDb, run_taskdb
from services.taskdb.tests.sweep.receiver import Receiver, receiving
from taskyard import errors
from taskyard.v1 import admin_service_pb2, group_pb2, group_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.egress import Egress
from taskyard_taskdb.domain.event import RetryRequested
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.webhook import show_secret
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.rpc.webhooks import webhook_request
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.storage.webhook import outbox as webhook_outbox
from taskyard_taskdb.sweep.groups import GroupSweep
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.webhook_sender import RECEIVERS_PER_TENANT, WebhookRequest, WebhookSender
from taskyard_taskdb.webhook_client import WebhookClient

ACTOR = Actor(ActorType.USER, "me")
OUTAGE_SECONDS = float(os.environ.get("TASKYARD_WEBHOOK_OUTAGE", "2"))


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
async def leadership(quiet: RunningTaskDb) -> Leadership:
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    return leadership


@pytest.fixture
async def sender(quiet: RunningTaskDb) -> AsyncIterator[WebhookSender]:
    client = WebhookClient(Egress.parse("127.0.0.0/8"), 2.0)
    yield WebhookSender(quiet.pool, lambda record: WebhookRequest(*webhook_request(record)), client)
    await client.close()


async def ended(quiet: RunningTaskDb, caller: Caller, url: str, **callback: Any) -> str:
    """Make a task with a callback that has succeeded; returns its name."""
    task = await caller.create(callback=task_pb2.Callback(url=url, **callback))
    await quiet.succeed(task.name)
    return task.name


async def make_due(quiet: RunningTaskDb) -> None:
    async with quiet.pool.transaction() as tx:
        await tx.execute("UPDATE webhooks SET due_time = now() - interval '1 s'")


def documented_recipe() -> Callable[[str, dict[str, str], bytes], bool]:
    """Return the function that docs/howto/webhooks.md recommends to receivers."""
    page = (Path(__file__).parents[4] / "docs/howto/webhooks.md").read_text()
    scope: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], scope)
    recipe: Callable[[str, dict[str, str], bytes], bool] = scope["is_genuine"]
    return recipe


@pytest.mark.seed("S0.9")
async def test_the_webhook_of_an_ended_task_is_sent_and_signed_as_documented(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender, receiver: Receiver
) -> None:
    name = await ended(quiet, caller, receiver.url("/done?x=1"), headers={"X-Team": "blue"})
    await sender.deliver_due(leadership)
    (request,) = receiver.requests
    assert request.path == "/done?x=1"
    assert request.headers["x-team"] == "blue" and request.headers["taskyard-event"] == "task.succeeded"
    assert request.task["name"] == name and request.task["status"]["phase"] == "TASK_PHASE_SUCCEEDED"
    assert "callback" not in request.task["spec"]
    assert not await quiet.rows("SELECT FROM webhooks")

    found = await quiet.pool.run(lambda tx: webhook_outbox.signing_secrets(tx, "default"))
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.new(found.values[0], signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    genuine, secret = documented_recipe(), show_secret(found.values[0])
    assert genuine(secret, headers, request.body)
    assert not genuine(secret, headers, request.body + b" ")
    assert not genuine(show_secret(b"x" * 32), headers, request.body)
    assert not genuine(secret, {**headers, "webhook-timestamp": "1"}, request.body)


async def test_both_secrets_sign_after_a_rotation(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender, receiver: Receiver
) -> None:
    old = await quiet.pool.run(lambda tx: webhook_outbox.signing_secrets(tx, "default"))
    new = await quiet.pool.run(lambda tx: webhook_outbox.rotate_secret(tx, "default", ACTOR))
    assert new.values == (new.values[0], old.values[0]) and new.values[0] != old.values[0]
    await ended(quiet, caller, receiver.url())
    await sender.deliver_due(leadership)
    assert receiver.requests[0].headers["webhook-signature"].count("v1,") == 2


async def shows_three_deliveries(quiet: RunningTaskDb, caller: Caller, task: str, port: int) -> None:
    """Check what a tenant is shown of the calls of its task, page by page."""
    request = admin_service_pb2.ListWebhookDeliveriesRequest(parent="tenants/default", page_size=2)
    page = await caller.admin.ListWebhookDeliveries(request)
    shown = page.deliveries[0]
    assert (shown.task, shown.url, shown.attempt_count) == (task, f"http://127.0.0.1:{port}/", 3)
    assert "Connect" in shown.last_error and shown.next_attempt_time.seconds and shown.create_time.seconds
    request.page_token = page.next_page_token
    rest = await caller.admin.ListWebhookDeliveries(request)
    assert len(page.deliveries) == 2 and len(rest.deliveries) == 1 and not rest.next_page_token
    request.page_token = "nonsense"
    with pytest.raises(errors.PageTokenInvalid):
        await caller.admin.ListWebhookDeliveries(request)
    await quiet.add_tenant("other")
    with pytest.raises(errors.NotFound):
        await caller.admin.ListWebhookDeliveries(
            admin_service_pb2.ListWebhookDeliveriesRequest(parent="tenants/other")
        )


@pytest.mark.covers("ListWebhookDeliveries", "NOT_FOUND")
@pytest.mark.covers("ListWebhookDeliveries", "PAGE_TOKEN_INVALID")
async def test_a_receiver_that_was_down_gets_all_webhooks_in_order_per_task(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender
) -> None:
    async with receiving(Receiver()) as probe:
        port = probe.port
    retry = lambda task, now: RetryRequested(actor=ACTOR)  # noqa: E731
    task = await caller.create(callback=task_pb2.Callback(url=f"http://127.0.0.1:{port}/"))
    for _ in range(2):
        await quiet.fail(task.name)
        await quiet.apply(task.name, retry)
    await quiet.succeed(task.name)
    for _ in range(3):
        await sender.deliver_due(leadership)
        await make_due(quiet)
    ((count, attempts, error),) = await quiet.rows(
        "SELECT count(*), max(attempt), max(last_error) FROM webhooks"
    )
    assert (count, attempts) == (3, 3) and "Connect" in error
    await shows_three_deliveries(quiet, caller, task.name, port)
    async with receiving(Receiver(port=port)) as receiver:
        while await quiet.rows("SELECT FROM webhooks"):
            await make_due(quiet)
            await sender.deliver_due(leadership)
    phases = [request.task["status"]["phase"] for request in receiver.requests]
    assert phases == ["TASK_PHASE_FAILED", "TASK_PHASE_FAILED", "TASK_PHASE_SUCCEEDED"]
    versions = [int(request.task["metadata"]["resourceVersion"]) for request in receiver.requests]
    assert versions == sorted(versions) and len(set(versions)) == 3


async def test_a_receiver_that_is_stopped_for_a_while_gets_all_webhooks_after_its_restart(
    database_url: str,
) -> None:
    """The leader of a running taskdb sends; `make webhooks` stops the receiver for a minute."""
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
            # Delays double from 2 s on, so the next attempt comes within about the length of the outage.
            async with asyncio.timeout(30 + 2 * OUTAGE_SECONDS):
                await receiver.holds(2 * tasks)
            print(f"down for {back - stopped:.1f} s, all delivered {time.monotonic() - back:.1f} s after it")
    delivered: dict[str, list[dict[str, Any]]] = {}
    for received in receiver.requests:
        assert genuine(secret, received.headers, received.body)
        delivered.setdefault(received.task["name"], []).append(received.task)
    assert len(delivered) == tasks
    for calls in delivered.values():
        assert [call["status"]["phase"] for call in calls] == events
        first, second = (int(call["metadata"]["resourceVersion"]) for call in calls)
        assert first < second


async def test_a_call_without_a_success_status_is_repeated_with_the_same_id(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender, receiver: Receiver
) -> None:
    statuses = iter((500, 404, 200))
    receiver.answer = lambda request: next(statuses)
    await ended(quiet, caller, receiver.url())
    for _ in range(3):
        await sender.deliver_due(leadership)
        await make_due(quiet)
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert len(receiver.requests) == 3 and not await quiet.rows("SELECT FROM webhooks")


async def test_a_receiver_that_hangs_holds_up_nobody_else(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender, receiver: Receiver
) -> None:
    async with receiving(Receiver(answer=lambda request: None)) as hanging:
        for _ in range(5):
            await ended(quiet, caller, hanging.url())
        name = await ended(quiet, caller, receiver.url())
        async with asyncio.timeout(30):
            await sender.deliver_due(leadership)
        assert [request.task["name"] for request in receiver.requests] == [name]
        # One call found that the receiver does not respond; the others were postponed with it.
        assert hanging.connections == 1
    ((count, attempts),) = await quiet.rows(
        "SELECT count(*), sum(attempt) FROM webhooks WHERE due_time > now()"
    )
    assert (count, attempts) == (5, 1)


async def test_slow_receivers_of_one_tenant_leave_connections_to_others(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, receiver: Receiver
) -> None:
    """Forty receivers that hang, each at an address of its own, and one of another tenant that answers."""
    await quiet.add_tenant("other")
    other = await quiet.caller(tenant_id="other")
    client = WebhookClient(Egress.parse("127.0.0.0/8"), 20.0)
    sender = WebhookSender(quiet.pool, lambda record: WebhookRequest(*webhook_request(record)), client)
    async with receiving(Receiver(answer=lambda request: None), "0.0.0.0") as hanging:
        for n in range(40):
            await ended(quiet, caller, hanging.url(host=f"127.0.1.{n + 1}"))
        task = await other.create(parent="tenants/other", callback=task_pb2.Callback(url=receiver.url()))
        await quiet.succeed(task.name)
        turns = asyncio.create_task(sender.deliver_due(leadership))
        async with asyncio.timeout(10):
            await receiver.holds(1)
        assert hanging.connections <= RECEIVERS_PER_TENANT
        turns.cancel()
        await sender.stop()
    await client.close()


async def test_a_rotated_secret_is_in_the_audit(quiet: RunningTaskDb) -> None:
    admin = await quiet.caller(api_keys.ADMIN)
    request = admin_service_pb2.GetWebhookSecretRequest(parent="tenants/default")
    first = (await admin.admin.GetWebhookSecret(request)).secret
    request.rotate = True
    second = (await admin.admin.GetWebhookSecret(request)).secret
    listed = await admin.tasks.ListAuditEvents(
        task_service_pb2.ListAuditEventsRequest(parent="tenants/default")
    )
    (event,) = [event for event in listed.audit_events if event.event_type == "tenant.secret_rotated"]
    assert event.resource == "tenants/default" and event.actor.id
    assert first != second and second not in str(event)


async def test_the_next_leader_repeats_calls_that_were_not_recorded_as_delivered(
    quiet: RunningTaskDb, caller: Caller, sender: WebhookSender, receiver: Receiver
) -> None:
    first, second = Leadership(quiet.pool, timedelta(0)), Leadership(quiet.pool, timedelta(0))
    assert await first.acquire()
    async with quiet.pool.transaction() as tx:
        await tx.execute("UPDATE coordinator_state SET expires_at = now()")
    assert await second.acquire()
    await ended(quiet, caller, receiver.url())
    # The former leader has not noticed the loss: it makes the call, but cannot delete it.
    await sender.deliver_due(first)
    assert len(receiver.requests) == 1 and await quiet.rows("SELECT FROM webhooks")
    await sender.deliver_due(second)
    assert len(receiver.requests) == 2 and not await quiet.rows("SELECT FROM webhooks")
    assert receiver.requests[0].body == receiver.requests[1].body


async def test_deleting_a_task_keeps_its_webhook(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender, receiver: Receiver
) -> None:
    name = await ended(quiet, caller, receiver.url())
    await caller.tasks.DeleteTask(task_service_pb2.DeleteTaskRequest(name=name))
    await sender.deliver_due(leadership)
    assert receiver.requests[0].task["name"] == name


async def test_a_call_is_given_up_after_its_maximum_age_or_a_410_response(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender, receiver: Receiver
) -> None:
    receiver.answer = lambda request: 410 if request.path == "/gone" else 500
    gone = await ended(quiet, caller, receiver.url("/gone"))
    old = await ended(quiet, caller, receiver.url("/old"))
    async with quiet.pool.transaction() as tx:
        await tx.execute("UPDATE webhooks SET create_time = now() - interval '4 days'")
    await sender.deliver_due(leadership)
    assert len(receiver.requests) == 2 and not await quiet.rows("SELECT FROM webhooks")
    # The audit of the tenant has an event for each.
    wanted = 'event_type = "webhook.given_up"'
    request = task_service_pb2.ListAuditEventsRequest(parent="tenants/default", filter=wanted)
    events = (await caller.tasks.ListAuditEvents(request)).audit_events
    assert {event.resource for event in events} == {
        name.replace("/tasks/", "/webhooks/") for name in (gone, old)
    }
    errors = {event.details["error"] for event in events}
    assert errors == {"the receiver answered 410 Gone", "the receiver answered 500"}


async def test_a_webhook_that_cannot_be_rendered_delays_no_other_and_is_recorded(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender, receiver: Receiver
) -> None:
    annotations = Struct()
    annotations.update({"a": float("nan")})
    spec = task_pb2.TaskSpec()
    spec.not_before.seconds = 253_402_300_800
    for column, value in (("annotations", annotations), ("spec", spec)):
        bad = await caller.create(callback=task_pb2.Callback(url=receiver.url("/bad")))
        sql = f"UPDATE tasks SET {column} = %s WHERE task_id = %s"
        await quiet.execute(sql, value.SerializeToString(), bad.metadata.id)
        await quiet.succeed(bad.name)
    good = await ended(quiet, caller, receiver.url("/good"))
    await sender.deliver_due(leadership)
    assert [request.task["name"] for request in receiver.requests] == [good]
    errors = await quiet.rows("SELECT attempt, last_error FROM webhooks ORDER BY id")
    assert [attempt for attempt, _ in errors] == [1, 1]
    assert all("cannot be shown as JSON" in error for _, error in errors)


async def test_a_loop_that_fails_is_restarted_logged_and_a_finding_of_the_doctor(
    database_url: str, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    async for running in run_taskdb(database_url, webhook_networks="127.0.0.0/8"):
        caller, admin = await running.caller(), await running.caller(api_keys.ADMIN)
        await running.execute("ALTER TABLE webhooks RENAME TO away")
        async with asyncio.timeout(20):
            while not any(record.message == "loop_failed" for record in caplog.records):
                # A commit makes the loop read its table.
                await caller.create()
        await running.execute("ALTER TABLE away RENAME TO webhooks")
        name = await ended(running, caller, receiver.url())
        async with asyncio.timeout(20):
            while not receiver.requests:
                await caller.create()
        assert receiver.requests[0].task["name"] == name
        found = await admin.admin.RunDoctor(admin_service_pb2.RunDoctorRequest(checks=["loops"]))
        assert not found.healthy and list(found.findings[0].examples) == ["webhooks"]
        repair = admin_service_pb2.RunDoctorRequest(checks=["loops"], repair=True)
        assert (await admin.admin.RunDoctor(repair)).healthy


async def test_the_webhook_of_a_complete_group_is_sent_once_for_each_completion(
    quiet: RunningTaskDb, caller: Caller, leadership: Leadership, sender: WebhookSender, receiver: Receiver
) -> None:
    group = group_pb2.Group()
    group.callback.url = receiver.url("/group")
    group.callback.headers["X-Team"] = "blue"
    await caller.groups.CreateGroup(
        group_service_pb2.CreateGroupRequest(parent="tenants/default", group_id="g", group=group)
    )
    task = await caller.create(group="g")
    name = "tenants/default/groups/g"
    shown = (await caller.groups.CloseGroup(group_service_pb2.CloseGroupRequest(name=name))).group
    assert shown.callback.url and not shown.callback.headers
    sweep = GroupSweep(quiet.pool, quiet.taskdb.bus.publish)
    await quiet.fail(task.name)
    for _ in range(3):
        await sweep.run(leadership)
    listed = await (await quiet.caller(api_keys.ADMIN)).admin.ListWebhookDeliveries(
        admin_service_pb2.ListWebhookDeliveriesRequest(parent="tenants/default")
    )
    assert [delivery.task for delivery in listed.deliveries] == [name]
    await sender.deliver_due(leadership)
    await quiet.apply(task.name, lambda task, now: RetryRequested(actor=ACTOR))
    await quiet.succeed(task.name)
    await sweep.run(leadership)
    await sender.deliver_due(leadership)
    first, second = receiver.requests
    assert first.headers["taskyard-event"] == "group.completed" and first.headers["x-team"] == "blue"
    assert first.task["name"] == name and first.task["state"] == "GROUP_STATE_COMPLETE"
    assert (first.task["notSucceededCount"], first.task["completionCount"]) == ("1", 1)
    assert (second.task["succeededCount"], second.task["completionCount"]) == ("1", 2)
    assert "callback" not in first.task
    assert first.headers["webhook-id"] != second.headers["webhook-id"]
