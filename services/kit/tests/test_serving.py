"""Health, reflection, listening and draining of a server in this process."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from services.kit.tests.conftest import Running, StartServer, health_stub
from services.kit.tests.echo_service import KEYS, SERVICE, EchoSettings, pb, rpc
from services.kit.tests.stubs import TESTS
from taskyard import errors
from taskyard.channel import open_channel
from taskyard.status import translated
from taskyard.v1 import lease_pb2, task_pb2, task_service_pb2
from taskyard_kit.auth import Kind
from taskyard_kit.reflection import V1, V1ALPHA
from taskyard_kit.startup import StartupError

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize("service", ["", SERVICE])
async def test_health_is_open_overall_and_per_service(echo: Running, service: str) -> None:
    stub = health_stub(echo.channel(""))
    assert (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status == SERVING


async def test_service_can_report_not_serving(echo: Running) -> None:
    stub = health_stub(echo.channel(""))
    await echo.server.set_health(serving=False)
    assert (await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))).status == NOT_SERVING
    await echo.server.set_health(serving=True)
    assert (await stub.Check(health_pb2.HealthCheckRequest())).status == SERVING


async def reflect(
    channel: grpc.aio.Channel, service: str = V1, **question: Any
) -> reflection_pb2.ServerReflectionResponse:
    info: Any = channel.stream_stream(
        f"/{service}/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    (answer,) = [answer async for answer in info(iter([reflection_pb2.ServerReflectionRequest(**question)]))]
    assert isinstance(answer, reflection_pb2.ServerReflectionResponse)
    return answer


async def list_services(channel: grpc.aio.Channel, service: str = V1) -> set[str]:
    answer = await reflect(channel, service, list_services="")
    return {found.name for found in answer.list_services_response.service}


def files_of(answer: reflection_pb2.ServerReflectionResponse) -> dict[str, FileDescriptorProto]:
    files = map(FileDescriptorProto.FromString, answer.file_descriptor_response.file_descriptor_proto)
    return {file.name: file for file in files}


@pytest.mark.parametrize("version", [V1, V1ALPHA])
async def test_reflection_lists_the_services_for_any_key(echo: Running, version: str) -> None:
    found = await list_services(echo.channel(KEYS[Kind.RUNNER].text), version)
    assert {SERVICE, "grpc.health.v1.Health", V1, V1ALPHA} <= found


@pytest.mark.parametrize(
    ("symbol", "file"),
    [
        (SERVICE, pb.DESCRIPTOR.name),
        (f"{SERVICE}.Echo", pb.DESCRIPTOR.name),
        ("taskyard.v1.Task", task_pb2.DESCRIPTOR.name),
        ("taskyard.v1.Task.metadata", task_pb2.DESCRIPTOR.name),
        ("taskyard.v1.TaskPhase", task_pb2.DESCRIPTOR.name),
        ("taskyard.v1.TASK_PHASE_SUCCEEDED", task_pb2.DESCRIPTOR.name),
        ("taskyard.v1.TaskService.GetTask", task_service_pb2.DESCRIPTOR.name),
        (f"{V1}.ServerReflectionInfo", "grpc/reflection/v1/reflection.proto"),
    ],
)
async def test_reflection_resolves_types_methods_fields_and_values(
    echo: Running, symbol: str, file: str
) -> None:
    answer = await reflect(echo.channel(KEYS[Kind.ADMIN].text), file_containing_symbol=symbol)
    assert file in files_of(answer)


@pytest.mark.parametrize("symbol", ["taskyard.v1.TaskService.Nothing", "taskyard.v1.Task.nothing", "nothing"])
async def test_reflection_of_an_unknown_symbol_is_not_found(echo: Running, symbol: str) -> None:
    answer = await reflect(echo.channel(KEYS[Kind.ADMIN].text), file_containing_symbol=symbol)
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert symbol in answer.error_response.error_message


async def test_reflection_shows_the_comments_of_the_contract(echo: Running) -> None:
    answer = await reflect(echo.channel(KEYS[Kind.ADMIN].text), file_containing_symbol="taskyard.v1.LeaseRef")
    described = files_of(answer)[lease_pb2.DESCRIPTOR.name]
    comments = [place.leading_comments for place in described.source_code_info.location]
    assert " Names a lease and proves that it is held.\n" in comments


async def test_reflection_without_a_key_is_refused(echo: Running) -> None:
    with pytest.raises(errors.Unauthenticated), translated():
        await list_services(echo.channel(""))


async def test_a_drain_turns_health_finishes_calls_and_refuses_new_ones(start_server: StartServer) -> None:
    echo = await start_server(drain_timeout=timedelta(seconds=20))
    stub, health = echo.stub(), health_stub(echo.channel(""))
    watched = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
    assert (await watched.read()).status == SERVING
    in_flight = asyncio.ensure_future(stub.Echo(pb.EchoRequest(text="hold")))
    await echo.servicer.entered.wait()

    drain = asyncio.create_task(echo.server.drain())
    assert (await watched.read()).status == NOT_SERVING
    # The watch ends as soon as new calls are refused.
    with pytest.raises(errors.ServerDraining), translated():
        await watched.read()
    with pytest.raises(errors.Unavailable), translated():
        await echo.stub().Echo(pb.EchoRequest(text="late"), timeout=5)
    assert not drain.done()

    echo.servicer.release.set()
    assert (await in_flight).text == "hold"
    await drain


async def test_new_calls_are_taken_during_the_lame_duck_time(start_server: StartServer) -> None:
    echo = await start_server(lame_duck=timedelta(seconds=30))
    health = health_stub(echo.channel(""))
    drain = asyncio.create_task(echo.server.drain())
    await echo.server.draining.wait()
    assert (await health.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING
    assert (await echo.stub().Echo(pb.EchoRequest(text="late"))).text == "late"
    drain.cancel()


async def test_drain_runs_drain_hooks_and_then_ends_open_streams(
    start_server: StartServer,
) -> None:
    echo = await start_server()

    async def goodbye() -> None:
        echo.servicer.goodbye.set()
        await received.wait()

    received = asyncio.Event()
    echo.server.on_drain(goodbye)
    call = echo.stub().Count(pb.EchoRequest(text="forever"))
    assert [(await call.read()).text for _ in range(3)] == ["0", "1", "2"]
    await echo.servicer.entered.wait()
    drain = asyncio.create_task(echo.server.drain())
    assert (await call.read()).text == "goodbye"
    received.set()
    with pytest.raises(errors.ServerDraining), translated():
        await call.read()
    await drain


async def test_a_drain_ends_a_call_that_waits_by_design(start_server: StartServer) -> None:
    echo = await start_server()
    waiting = asyncio.ensure_future(echo.stub().Wait(pb.EchoRequest()))
    await echo.servicer.entered.wait()
    async with asyncio.timeout(10):
        await echo.server.drain()
    with pytest.raises(errors.ServerDraining), translated():
        await waiting


async def test_a_drain_ends_at_its_deadline_although_a_call_hangs(start_server: StartServer) -> None:
    echo = await start_server(drain_timeout=timedelta(milliseconds=200))
    call = asyncio.ensure_future(echo.stub().Echo(pb.EchoRequest(text="hold")))
    await echo.servicer.entered.wait()
    async with asyncio.timeout(10):
        await echo.server.drain()
    with pytest.raises((grpc.RpcError, asyncio.CancelledError)):
        await call


async def test_connection_that_floods_the_server_with_pings_is_closed_without_affecting_others(
    echo: Running,
) -> None:
    stub = echo.stub()
    await stub.Echo(pb.EchoRequest(text="before"))
    reader, writer = await asyncio.open_unix_connection(echo.server.address.removeprefix("unix:"))
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, b"") + frame(PING, bytes(8)) * 100)
    async with asyncio.timeout(20):
        received = await reader.read(-1)  # to the end, which is the server's
    writer.close()
    assert frame_types(received)[-1] == GOAWAY
    assert b"too_many_pings" in received
    assert (await stub.Echo(pb.EchoRequest(text="after"))).text == "after"


SETTINGS, PING, GOAWAY = 4, 6, 7


def frame(kind: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, 0)) + bytes(4) + payload


def frame_types(received: bytes) -> list[int]:
    found = []
    while received:
        found.append(received[3])
        received = received[9 + int.from_bytes(received[:3], "big") :]
    return found


async def test_port_in_use_is_reported_with_its_address(start_server: StartServer) -> None:
    first = await start_server(listen="127.0.0.1:0")
    with pytest.raises(
        StartupError, match=rf"cannot listen on {first.server.address}: Address already in use"
    ):
        await start_server(listen=first.server.address)


async def test_two_servers_share_a_port_only_with_reuse_port(start_server: StartServer) -> None:
    first = await start_server(listen="127.0.0.1:0", reuse_port=True)
    second = await start_server(listen=first.server.address, reuse_port=True)
    assert second.server.port == first.server.port


@pytest.mark.parametrize("listen", ["203.0.113.1:0", "no-such-host.invalid:0"])
async def test_unavailable_address_is_reported(start_server: StartServer, listen: str) -> None:
    with pytest.raises(StartupError, match=r"cannot listen on .*set another --listen"):
        await start_server(listen=listen, allow_plaintext=True)


async def test_tls_serves_with_a_certificate_and_the_client_checks_it(start_server: StartServer) -> None:
    # A pair made for these tests alone, valid for a hundred years.
    cert, key = TESTS / "tls/cert.pem", TESTS / "tls/key.pem"
    echo = await start_server(listen="localhost:0", tls_cert=cert, tls_key=key)
    async with open_channel(echo.server.address, key=KEYS[Kind.TENANT].text, tls_ca=cert) as channel:
        assert (await rpc.EchoServiceStub(channel).Echo(pb.EchoRequest(text="safe"))).text == "safe"


async def test_invalid_certificate_is_reported(start_server: StartServer, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    with pytest.raises(StartupError, match=r"cannot listen on localhost:0; check .* the certificate"):
        await start_server(listen="localhost:0", tls_cert=broken, tls_key=broken)


@pytest.mark.parametrize(
    ("listen", "refused"),
    [
        ("0.0.0.0:7420", True),
        ("[::]:7420", True),
        ("192.0.2.1:7420", True),
        ("127.0.0.1:7420", False),
        ("[::1]:7420", False),
        ("localhost:7420", False),
        ("unix:/tmp/x.sock", False),
    ],
)
def test_plaintext_is_refused_beyond_loopback(listen: str, refused: bool) -> None:
    problems = list(EchoSettings(listen=listen).check())
    assert bool(problems) == refused
    assert all("allow_plaintext" in str(problem) for problem in problems)
    assert not list(EchoSettings(listen=listen, allow_plaintext=True).check())


def test_a_client_does_not_send_its_key_in_plaintext_beyond_this_machine() -> None:
    with pytest.raises(ValueError, match=r"192\.0\.2\.1:7420 is not on this machine.*use TLS"):
        open_channel("192.0.2.1:7420", key="x")
