"""Egress of webhooks: no URL and no name reaches an internal address."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.sweep.receiver import Receiver, receiving
from taskyard.errors import FieldInvalid
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb.domain.egress import Address, Egress
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.webhook_sender import Unreachable, WebhookRequest
from taskyard_taskdb.webhook_client import WebhookClient, resolve

INTERNAL = (
    "http://127.0.0.1/",
    "http://127.0.0.1./",
    "http://127.1/",
    "http://127.1./",
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
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[::7f00:1]/",
    "http://[::ffff:0:7f00:1]/",
    "http://[fec0::1]/",
    "http://[4000::1]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data",
    "http://100.64.0.1/",
    "http://0.0.0.0/",
    "http://224.0.0.1/",
    "http://192.0.0.8/",
    "http://192.0.0.9/",
    "http://168.63.129.16/metadata",
    "http://192.88.99.1/",
    "http://192.31.196.1/",
    "http://192.52.193.1/",
    "http://192.175.48.1/",
    "http://198.18.0.1/",
    "http://203.0.113.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[2001:20::1]/",
    "http://[2001:db8::1]/",
    "http://[2620:4f:8000::1]/",
    "http://[3fff::1]/",
    "http://[::ffff:168.63.129.16]/",
    "http://user:secret@example.com/",
    "http://example.com:0/",
    "http://[1::/",
    "http://exa mple.com/",
    "ftp://example.com/",
)


@pytest.mark.seed("S0.79")
async def test_a_webhook_to_an_internal_address_is_rejected_with_the_field(
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


def test_ipv6_addresses_are_public_by_themselves_or_by_the_ipv4_address_they_embed() -> None:
    public = ("2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1")
    inside = ("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "2001:db8::1", "ff0e::1", "::", "fec0::1")
    for text in public:
        assert Egress().permits(ip_address(text)), text
    for text in inside:
        assert not Egress().permits(ip_address(text)), text
    # A permitted network is permitted in every notation of its addresses.
    assert Egress.parse("10.0.0.0/8").permits(ip_address("::ffff:10.0.0.1"))
    assert Egress.parse("fec0::/10").permits(ip_address("fec0::1"))


async def test_a_server_with_default_settings_does_not_call_an_internal_url_in_its_outbox(
    quiet: RunningTaskDb,
) -> None:
    caller = await quiet.caller()
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    async with receiving(Receiver()) as canary:
        task = await caller.create(callback=task_pb2.Callback(url="https://hooks.example.com/"))
        smuggled = task_pb2.Callback(url=canary.url()).SerializeToString()
        async with quiet.pool.transaction() as tx:
            await tx.execute("UPDATE tasks SET callback = %s", (smuggled,))
        await quiet.succeed(task.name)
        await quiet.taskdb.housekeeping._webhooks.deliver_due(leadership)
        assert await quiet.rows("SELECT attempt, last_error FROM webhooks") == [
            (1, "ConnectError: 127.0.0.1 resolves to 127.0.0.1, which webhooks may not reach")
        ]
        assert canary.connections == 0
        # The canary does answer permitted requests.
        permitted = WebhookClient(Egress.parse("127.0.0.1/32"), 2.0)
        assert await permitted(WebhookRequest(canary.url(), {}, b"")) == 204
        await permitted.close()


async def test_no_name_or_redirect_reaches_an_internal_address() -> None:
    """Loopback, IPv6, decimal addresses, redirects and a name that resolves differently each time."""
    async with receiving(Receiver()) as canary, receiving(Receiver(port=canary.port), "::1") as canary6:
        answers: list[list[Address]] = []

        async def lie(host: str, port: int) -> list[Address]:
            return answers.pop(0)

        closed = WebhookClient(Egress(), 2.0)
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]"):
            with pytest.raises(Unreachable, match=r"webhooks may not reach|cannot be resolved|URL"):
                await closed(WebhookRequest(canary.url(host=host), {}, b""))
        lying = WebhookClient(Egress(), 2.0, lie)
        answers[:] = [[ip_address("127.0.0.1")], [ip_address("::1"), ip_address("10.1.1.1")]]
        for _ in range(2):
            with pytest.raises(Unreachable, match="webhooks may not reach"):
                await lying(WebhookRequest(canary.url(host="rebind.example.com"), {}, b""))
        # The client connects to the address that it checked: the second answer, the canary, is never used.
        answers[:] = [[ip_address("127.0.0.2")], [ip_address("127.0.0.1")]]
        async with receiving(Receiver(port=canary.port, location=canary.url()), "127.0.0.2") as allowed:
            once = WebhookClient(Egress.parse("127.0.0.2/32"), 2.0, lie)
            allowed.answer = lambda request: 302
            assert await once(WebhookRequest(canary.url(host="rebind.example.com"), {}, b"{}")) == 302
            assert len(answers) == 1 and len(allowed.requests) == 1
            await once.close()
        assert (canary.connections, canary6.connections) == (0, 0)
        # The canaries do answer permitted requests.
        permitted = WebhookClient(Egress.parse("127.0.0.1/32,::1/128"), 2.0)
        for host in ("127.0.0.1", "2130706433", "[::1]"):
            assert await permitted(WebhookRequest(canary.url(host=host), {}, b"")) == 204
        assert (canary.connections, canary6.connections) == (2, 1)
        for client in (closed, lying, permitted):
            await client.close()


async def test_decimal_addresses_go_through_the_system_resolver() -> None:
    assert await resolve("2130706433", 80) == [ip_address("127.0.0.1")]
    assert not Egress().choose(await resolve("localhost", 80))
