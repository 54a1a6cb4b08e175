"""A service as a process of its own: signals, exit codes, one-line errors, failpoints."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from services.kit.tests import stubs
from services.kit.tests.conftest import STUBS, health_stub
from services.kit.tests.echo_service import KEYS, SERVICE, pb, rpc
from taskyard import errors
from taskyard.channel import open_channel
from taskyard.status import translated
from taskyard_kit.auth import Kind
from taskyard_kit.shutdown import end_tasks

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass
class Service:
    """The echo service in another process; its log is read as it comes."""

    process: asyncio.subprocess.Process
    seen: list[dict[str, Any]] = field(default_factory=list)

    async def event(self, name: str) -> dict[str, Any]:
        """The next log event of this name."""
        assert self.process.stderr is not None
        async with asyncio.timeout(30):
            while line := await self.process.stderr.readline():
                if not line.startswith(b"{"):
                    continue
                self.seen.append(json.loads(line))
                if self.seen[-1]["event"] == name:
                    return self.seen[-1]
        raise AssertionError(f"the service ended without {name}: {self.seen}")

    async def end(self) -> int:
        async with asyncio.timeout(30):
            return await self.process.wait()


Launch = Callable[..., Awaitable[Service]]


@pytest.fixture
async def launch() -> AsyncIterator[Launch]:
    """Starts the echo service with flags, and environment as keywords."""
    started: list[Service] = []

    async def start(*flags: str, **environment: str) -> Service:
        path = os.pathsep.join((str(STUBS), str(stubs.CHECKOUT)))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(stubs.TESTS / "echo_service.py"),
            *flags,
            env={"PYTHONPATH": path, "PATH": os.environ["PATH"], **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        started.append(Service(process))
        return started[-1]

    yield start
    for service in started:
        if service.process.returncode is None:
            service.process.kill()
            await service.process.wait()


async def output(service: Service) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a service that ends by itself."""
    async with asyncio.timeout(30):
        out, err = await service.process.communicate()
    assert service.process.returncode is not None
    return service.process.returncode, out.decode(), err.decode()


def connect(address: str) -> grpc.aio.Channel:
    return open_channel(address, key=KEYS[Kind.TENANT].text)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_with_a_call_in_flight_and_ends_with_zero(
    launch: Launch, tmp_path: Path, signum: signal.Signals
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    address = f"unix:{tmp_path}/echo.sock"
    service = await launch(
        "--listen", address, TASKYARD_FAILPOINTS=f"echo.before_response.async=pause:{fifo}"
    )
    await service.event("serving")
    async with connect(address) as channel:
        stub, health = rpc.EchoServiceStub(channel), health_stub(channel)
        watched = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        await watched.read()
        in_flight = asyncio.ensure_future(stub.Echo(pb.EchoRequest(text="hello")))
        assert await asyncio.to_thread(fifo.read_text) == "echo.before_response.async"
        service.process.send_signal(signum)
        assert (await watched.read()).status == NOT_SERVING
        await asyncio.to_thread(fifo.write_text, "go on")
        assert (await in_flight).text == "hello"
    assert await service.end() == 0


async def test_the_second_signal_stops_at_once(launch: Launch, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/echo.sock"
    service = await launch("--listen", address, "--drain-timeout", "10m")
    await service.event("serving")
    async with connect(address) as channel:
        call = asyncio.ensure_future(rpc.EchoServiceStub(channel).Echo(pb.EchoRequest(text="hold")))
        await rpc.EchoServiceStub(channel).Echo(pb.EchoRequest(text="held:wait"))
        service.process.terminate()
        await service.event("draining")
        service.process.terminate()
        assert await service.end() == 0
        with pytest.raises(grpc.RpcError):
            await call


async def test_a_port_in_use_is_one_line_and_exit_code_one(launch: Launch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, out, err = await output(await launch("--listen", address))
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        f"taskyard-echo: cannot listen on {address}: Address already in use; "
        "stop what uses it or set another --listen"
    ]


async def test_plaintext_beyond_loopback_is_one_line_and_exit_code_two(launch: Launch) -> None:
    code, _, err = await output(await launch("--listen", "0.0.0.0:0"))
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "listen = '0.0.0.0:0': plaintext is for loopback only" in err


async def test_an_unknown_flag_is_one_line_with_the_nearest_and_exit_code_two(launch: Launch) -> None:
    code, _, err = await output(await launch("--lisen=1"))
    assert (code, err) == (2, "taskyard-echo: unknown flag --lisen; did you mean --listen?\n")


async def test_print_config_prints_and_ends_with_zero(launch: Launch) -> None:
    code, out, err = await output(await launch("--print-config", TASKYARD_ECHO_TOKEN="canary"))
    assert (code, err) == (0, "")
    assert "canary" not in out
    assert "token = ********" in out


async def test_unknown_error_is_one_line_with_its_correlation_id(launch: Launch) -> None:
    code, _, err = await output(await launch("--listen", "unix:/x", TASKYARD_ECHO_GREETING="crash at start"))
    logged, message = err.splitlines()
    assert code == 1
    correlation_id = json.loads(logged)["correlation_id"]
    assert message == f"taskyard-echo: internal error; see the log entry with correlation id {correlation_id}"


async def test_a_failpoint_kills_the_process_at_its_third_hit(launch: Launch, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/echo.sock"
    service = await launch(
        "--listen", address, TASKYARD_FAILPOINTS="echo/echo.before_response=kill@3;other/x=kill"
    )
    await service.event("serving")
    async with connect(address) as channel:
        stub = rpc.EchoServiceStub(channel)
        for text in ("one", "two"):
            assert (await stub.Echo(pb.EchoRequest(text=text))).text == text
        with pytest.raises(errors.Unavailable), translated():
            await stub.Echo(pb.EchoRequest(text="three"))
    assert await service.end() == -signal.SIGKILL


async def test_an_unknown_failpoint_is_refused_at_start(launch: Launch) -> None:
    code, _, err = await output(
        await launch("--listen", "unix:/x", TASKYARD_FAILPOINTS="echo.before_respnse=kill")
    )
    assert code == 1
    assert err == (
        "taskyard-echo: TASKYARD_FAILPOINTS: unknown failpoint 'echo.before_respnse'; "
        "did you mean echo.before_response?\n"
    )


async def test_background_tasks_end_also_if_they_lose_a_cancellation() -> None:
    lost = 0

    async def stubborn() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost += 1
                if lost == 2:
                    raise

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await end_tasks([task])
    assert task.cancelled()
