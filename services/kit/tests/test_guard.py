"""The wrapper of handlers, over a real connection: keys, policies, validation, deadlines, errors."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import grpc
import pytest

from services.kit.tests.conftest import Running, StartServer
from services.kit.tests.echo_service import KEYS, POLICIES, SERVICE, pb
from taskyard import errors
from taskyard.status import from_rpc_error, translated
from taskyard_kit.auth import Kind, PolicyError, allow
from taskyard_kit.keys import ApiKey
from taskyard_kit.writes import Writes


async def test_a_call_with_a_valid_key_reaches_the_handler(echo: Running) -> None:
    answer = await echo.stub().Echo(pb.EchoRequest(text="who"))
    assert answer.text == "tenant acme (key tenantkey)"


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("", "no key was sent"),
        ("nonsense", "ty_<id>_<secret>"),
        (ApiKey("strangerkey", "x" * 43).text, "unknown, expired or revoked"),
        (ApiKey(KEYS[Kind.TENANT].id, "x" * 43).text, "unknown, expired or revoked"),
    ],
)
async def test_a_missing_or_wrong_key_is_unauthenticated(echo: Running, key: str, problem: str) -> None:
    with pytest.raises(errors.Unauthenticated, match=problem), translated():
        await echo.stub(key).Echo(pb.EchoRequest())


async def test_wrong_kind_of_principal_is_denied_and_the_needed_kinds_are_named(echo: Running) -> None:
    with pytest.raises(errors.PermissionDenied) as caught, translated():
        await echo.stub(KEYS[Kind.RUNNER].text).Echo(pb.EchoRequest())
    assert str(caught.value).startswith("runner r1 (key runnerkey) may not call")
    assert caught.value.needed == "admin or scheduler or tenant"


async def test_a_key_without_the_scope_is_denied(start_server: StartServer) -> None:
    policies = {**POLICIES, f"/{SERVICE}/Echo": allow(Kind.SCHEDULER, scope="write")}
    echo = await start_server(policies)
    with pytest.raises(errors.PermissionDenied, match="scheduler with scope write"), translated():
        await echo.stub(KEYS[Kind.SCHEDULER].text).Echo(pb.EchoRequest())


async def test_start_fails_with_every_rpc_that_has_no_policy_and_every_stale_entry(
    start_server: StartServer,
) -> None:
    policies = {k: v for k, v in POLICIES.items() if not k.endswith(("/Echo", "/Chat"))}
    policies["/kit.test.v1.EchoService/Gone"] = allow(Kind.ADMIN)
    with pytest.raises(PolicyError) as caught:
        await start_server(policies)
    assert f"RPC without a policy: /{SERVICE}/Chat" in str(caught.value)
    assert f"RPC without a policy: /{SERVICE}/Echo" in str(caught.value)
    assert f"policy for an RPC that is not served: /{SERVICE}/Gone" in str(caught.value)


async def test_another_tenants_object_is_not_found_and_admins_see_all(echo: Running) -> None:
    with pytest.raises(errors.NotFound) as caught, translated():
        await echo.stub().Echo(pb.EchoRequest(text="tenant:rival"))
    assert (caught.value.kind, caught.value.name) == ("task", "tenants/rival/tasks/1")
    assert (await echo.stub().Echo(pb.EchoRequest(text="tenant:acme"))).text
    assert (await echo.stub(KEYS[Kind.ADMIN].text).Echo(pb.EchoRequest(text="tenant:rival"))).text


async def test_concurrent_calls_with_one_key_verify_it_once(echo: Running) -> None:
    stub = echo.stub()
    await asyncio.gather(*(stub.Echo(pb.EchoRequest(text="x")) for _ in range(20)))
    assert echo.keys.call_count == 1


async def test_revoked_key_is_refused_after_invalidation(echo: Running) -> None:
    stub = echo.stub()
    await stub.Echo(pb.EchoRequest())
    del echo.keys.principals[KEYS[Kind.TENANT].id]
    echo.server.authenticator.invalidate(KEYS[Kind.TENANT].id)
    with pytest.raises(errors.Unauthenticated), translated():
        await stub.Echo(pb.EchoRequest())


async def test_open_streams_of_a_revoked_key_end_and_others_continue(start_server: StartServer) -> None:
    interval = timedelta(milliseconds=100)
    echo = await start_server(key_cache_ttl=timedelta(0), key_check_interval=interval)
    mine, theirs = echo.stub(), echo.stub(KEYS[Kind.RUNNER].text)
    stream, waiting, other = mine.Count(pb.EchoRequest(text="forever")), mine.Chat(), theirs.Chat()
    for call in (waiting, other):
        await call.write(pb.EchoRequest(text="here"))
        assert (await call.read()).text == "here"
    assert [(await stream.read()).text for _ in range(3)] == ["0", "1", "2"]
    del echo.keys.principals[KEYS[Kind.TENANT].id]
    async with asyncio.timeout(20):
        for call in (stream, waiting):
            with pytest.raises(errors.Unauthenticated, match="revoked"), translated():
                await call.read()
    await other.write(pb.EchoRequest(text="still here"))
    assert (await other.read()).text == "still here"
    other.cancel()


async def test_streams_continue_while_the_key_store_does_not_answer(start_server: StartServer) -> None:
    interval = timedelta(milliseconds=100)
    echo = await start_server(key_cache_ttl=timedelta(0), key_check_interval=interval)
    stream = echo.stub().Chat()
    await stream.write(pb.EchoRequest(text="here"))
    assert (await stream.read()).text == "here"
    echo.keys.outage = asyncio.Event()
    async with asyncio.timeout(20):
        await echo.keys.outage.wait()
    await stream.write(pb.EchoRequest(text="still here"))
    assert (await stream.read()).text == "still here"
    stream.cancel()


async def test_a_request_that_breaks_rules_names_each_field_and_value(echo: Running) -> None:
    request = pb.EchoRequest(text="x" * 101, parts=[pb.Part(size=1), pb.Part(size=11)])
    with pytest.raises(errors.FieldInvalid) as caught, translated():
        await echo.stub().Echo(request)
    found = {v.field: v for v in caught.value.violations}
    assert found.keys() == {"text", "parts[1].size"}
    assert "not 11" in found["parts[1].size"].description
    assert found["text"].rule == "string.max_len"
    assert len(found["text"].description) < 200


async def test_values_of_maps_are_not_repeated_in_an_error(echo: Running) -> None:
    with pytest.raises(errors.FieldInvalid) as caught, translated():
        await echo.stub().Echo(pb.EchoRequest(env={"TOKEN": "canary-secret"}))
    assert [v.field for v in caught.value.violations] == ['env["TOKEN"]']
    assert "canary" not in str(caught.value)


async def test_a_thousand_violations_still_make_a_readable_status(echo: Running) -> None:
    request = pb.EchoRequest(parts=[pb.Part(size=99)] * 1000)
    with pytest.raises(errors.FieldInvalid) as caught, translated():
        await echo.stub().Echo(request)
    assert caught.value.violations[0].field == "parts[0].size"
    assert "and 995 more" in str(caught.value)


async def test_undecodable_request_is_an_invalid_argument(echo: Running) -> None:
    call: Any = echo.channel().unary_unary(f"/{SERVICE}/Echo")
    with pytest.raises(errors.InvalidArgument, match="3 bytes are not a message"), translated():
        await call(b"\xff\xff\xff")


async def test_an_unauthenticated_call_is_refused_before_its_request_is_read(echo: Running) -> None:
    call: Any = echo.channel("").unary_unary(f"/{SERVICE}/Echo")
    with pytest.raises(errors.Unauthenticated), translated():
        await call(b"\xff\xff\xff")


@pytest.mark.parametrize("shape", ["Join", "Chat"])
async def test_messages_of_a_request_stream_are_validated_too(echo: Running, shape: str) -> None:
    call = getattr(echo.stub(), shape)(iter([pb.EchoRequest(text="a"), pb.EchoRequest(text="x" * 101)]))
    with pytest.raises(errors.FieldInvalid), translated():
        if shape == "Join":
            await call
        else:
            assert [answer.text async for answer in call] == ["a"]


async def test_streams_work_in_both_directions(echo: Running) -> None:
    stub = echo.stub()
    assert [answer.text async for answer in stub.Count(pb.EchoRequest())] == ["0", "1", "2"]
    requests = [pb.EchoRequest(text="a"), pb.EchoRequest(text="b")]
    assert (await stub.Join(iter(requests))).text == "a b"
    assert [answer.text async for answer in stub.Chat(iter(requests))] == ["a", "b"]


@pytest.mark.parametrize("shape", ["Echo", "Count", "Chat"])
async def test_an_error_of_a_handler_arrives_with_its_data_in_every_shape(echo: Running, shape: str) -> None:
    echo.servicer.error = errors.StaleGeneration("t1", 3, 5)
    request = pb.EchoRequest(text="raise")
    call = getattr(echo.stub(), shape)(iter([request]) if shape == "Chat" else request)
    with pytest.raises(errors.StaleGeneration) as caught, translated():
        if shape == "Echo":
            await call
        else:
            _ = [answer async for answer in call]
    assert caught.value.current_generation == 5
    assert caught.value.message == echo.servicer.error.message


@pytest.mark.parametrize("shape", ["Echo", "Count"])
async def test_an_unknown_exception_is_internal_with_a_correlation_id_and_the_detail_stays_in_the_log(
    echo: Running, shape: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(grpc.RpcError) as caught:
        call = getattr(echo.stub(), shape)(pb.EchoRequest(text="crash"))
        if shape == "Echo":
            await call
        else:
            _ = [answer async for answer in call]
    error = from_rpc_error(caught.value)
    assert isinstance(error, errors.Internal)
    assert "hunter2" not in str(caught.value)
    records = [
        r for r in caplog.records if getattr(r, "fields", {}).get("correlation_id") == error.correlation_id
    ]
    assert len(records) == 1
    assert "hunter2" in (records[0].exc_text or str(records[0].exc_info))


async def test_a_caller_that_leaves_while_it_is_sent_to_is_no_error(
    echo: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for number in range(40):
            # A message is being written when the connection ends.
            call = echo.stub().Count(pb.EchoRequest(text="flood"))
            for _ in range(number % 5 + 4):
                await call.read()
            await echo.channels[-1].close()
        await echo.server.drain()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("taskyard")] == []


async def test_a_write_that_fails_because_the_call_has_ended_cancels_its_stream() -> None:
    class Ended:
        """A call whose peer is gone, as gRPC reports it."""

        async def write(self, _: object) -> None:
            raise grpc.aio.InternalError("Failed to send")

    with pytest.raises(asyncio.CancelledError):
        await Writes().write(b"", Ended())


async def test_an_rpc_that_the_servicer_leaves_out_is_unimplemented(echo: Running) -> None:
    with pytest.raises(errors.Unimplemented, match="Missing"), translated():
        await echo.stub().Missing(pb.EchoRequest())


async def test_a_unary_call_ends_at_the_servers_deadline(start_server: StartServer) -> None:
    echo = await start_server(call_timeout=timedelta(milliseconds=100))
    with (
        pytest.raises(errors.DeadlineExceeded, match=f"/{SERVICE}/Echo took longer than 100ms"),
        translated(),
    ):
        await echo.stub().Echo(pb.EchoRequest(text="hold"))


async def test_a_policy_may_give_a_method_its_own_deadline(start_server: StartServer) -> None:
    policies = {**POLICIES, f"/{SERVICE}/Echo": allow(Kind.TENANT, deadline=timedelta(milliseconds=50))}
    echo = await start_server(policies)
    with pytest.raises(errors.DeadlineExceeded, match="50ms"), translated():
        await echo.stub().Echo(pb.EchoRequest(text="hold"))


async def test_a_method_that_waits_by_design_has_no_server_deadline(start_server: StartServer) -> None:
    echo = await start_server(call_timeout=timedelta(milliseconds=100))
    stub = echo.stub()
    waiting = asyncio.ensure_future(stub.Wait(pb.EchoRequest()))
    # A call that starts later and runs into the deadline shows that the waiting one has outlived it.
    await echo.servicer.entered.wait()
    with pytest.raises(errors.DeadlineExceeded), translated():
        await stub.Echo(pb.EchoRequest(text="hold"))
    assert not waiting.done()
    echo.servicer.release.set()
    assert (await waiting).text == "waited"


async def test_the_callers_own_deadline_cancels_the_handler(echo: Running) -> None:
    with pytest.raises(errors.DeadlineExceeded), translated():
        await echo.stub().Echo(pb.EchoRequest(text="hold"), timeout=0.1)


async def test_a_message_above_the_limit_is_refused(start_server: StartServer) -> None:
    echo = await start_server(max_message_bytes=64 * 1024)
    with pytest.raises(errors.ResourceExhausted) as caught, translated():
        await echo.stub().Echo(pb.EchoRequest(blob=b"x" * 70_000))
    assert not caught.value.retryable


async def test_the_traceparent_is_passed_on_without_opentelemetry(echo: Running) -> None:
    sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer = await echo.stub().Echo(pb.EchoRequest(text="trace"), metadata=(("traceparent", sent),))
    assert answer.text == sent


async def test_refused_call_carries_its_retry_delay(echo: Running) -> None:
    echo.servicer.error = errors.RateLimited("tenants/acme", "10", retry_after=timedelta(seconds=1.5))
    with pytest.raises(grpc.RpcError) as caught:
        await echo.stub().Echo(pb.EchoRequest(text="raise"))
    error = from_rpc_error(caught.value)
    assert error.retryable and error.retry_after == timedelta(seconds=1.5)
