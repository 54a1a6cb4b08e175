"""A service built with the kit, which the tests run in their own process or as a separate one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc.aio
import kit_echo_pb2 as pb  # type: ignore[import-not-found]
import kit_echo_pb2_grpc as rpc  # type: ignore[import-not-found]

from taskyard import errors
from taskyard_kit import failpoint, telemetry
from taskyard_kit.auth import Kind, Policy, Principal, allow, current_principal, require_tenant
from taskyard_kit.keys import ApiKey
from taskyard_kit.run import run
from taskyard_kit.serve import Server, ServeSettings
from taskyard_kit.settings import setting
from taskyard_kit.telemetry import TelemetrySettings
from taskyard_kit.values import Secret

__all__ = ["pb", "rpc"]

SERVICE = "kit.test.v1.EchoService"

# Fixed, so that a test has the keys of a service in another process.
KEYS = {kind: ApiKey(f"{kind}key", "s" * 40 + kind) for kind in Kind}

POLICIES: Mapping[str, Policy] = {
    f"/{SERVICE}/Echo": allow(Kind.TENANT, Kind.ADMIN, Kind.SCHEDULER),
    f"/{SERVICE}/Wait": allow(Kind.TENANT, waits=True),
    f"/{SERVICE}/Count": allow(Kind.TENANT),
    f"/{SERVICE}/Join": allow(Kind.TENANT),
    f"/{SERVICE}/Chat": allow(Kind.TENANT, Kind.RUNNER),
    f"/{SERVICE}/Missing": allow(Kind.TENANT),
}

ECHO_BEFORE_RESPONSE = failpoint.declare("echo.before_response")
ECHO_BEFORE_RESPONSE_ASYNC = failpoint.declare("echo.before_response.async")


class EchoSettings(ServeSettings, TelemetrySettings):
    """Settings of the test service."""

    service = "echo"
    about = "A service for the tests of the kit."

    greeting: str = setting("hello", help="what it answers with")
    token: Secret = setting(Secret(), help="a secret")
    peer_key: Secret = setting(Secret(), env="TASKYARD_PEER_KEY", help="a shared secret")


class Keys:
    """The key store of the tests; counts its calls."""

    def __init__(self) -> None:
        self.call_count = 0
        # Simulates an outage; the event is set when the store is called.
        self.outage: asyncio.Event | None = None
        self.principals = {
            KEYS[Kind.TENANT].id: Principal(Kind.TENANT, KEYS[Kind.TENANT].id, tenant="acme"),
            KEYS[Kind.ADMIN].id: Principal(Kind.ADMIN, KEYS[Kind.ADMIN].id),
            KEYS[Kind.SCHEDULER].id: Principal(
                Kind.SCHEDULER, KEYS[Kind.SCHEDULER].id, scopes=frozenset({"read"})
            ),
            KEYS[Kind.RUNNER].id: Principal(
                Kind.RUNNER, KEYS[Kind.RUNNER].id, runner="r1", tenants=frozenset({"acme"})
            ),
        }

    async def verify(self, key: ApiKey) -> Principal | None:
        self.call_count += 1
        if self.outage is not None:
            self.outage.set()
            raise errors.StorageUnavailable("not applied")
        await asyncio.sleep(0)
        digests = {held.id: held.digest for held in KEYS.values()}
        if key.id not in digests or not key.matches(digests[key.id]):
            return None
        return self.principals.get(key.id)


class EchoServicer(rpc.EchoServiceServicer):  # type: ignore[misc]
    """Interprets the text of a request as a command."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.hold_count = 0
        self.goodbye = asyncio.Event()

    async def Echo(self, request: Any, context: Any) -> Any:
        verb, _, argument = request.text.partition(":")
        if verb == "raise":
            raise self.error
        if verb == "crash":
            raise RuntimeError("the password is hunter2")
        if verb == "hold":
            self.hold_count += 1
            self.entered.set()
            await self.release.wait()
        if verb == "who":
            return pb.EchoResponse(text=str(current_principal()))
        if verb == "trace":
            return pb.EchoResponse(text=telemetry.current_traceparent())
        if verb == "tenant":
            require_tenant(argument, "task", f"tenants/{argument}/tasks/1")
        if verb == "held":
            await self.entered.wait()
        ECHO_BEFORE_RESPONSE.hit()
        await ECHO_BEFORE_RESPONSE_ASYNC.reach()
        return pb.EchoResponse(text=request.text)

    error: errors.TaskyardError = errors.ServerDraining()

    async def Wait(self, request: Any, context: Any) -> Any:
        self.entered.set()
        await self.release.wait()
        return pb.EchoResponse(text="waited")

    async def Count(self, request: Any, context: Any) -> AsyncIterator[Any]:
        for number in range(3):
            yield pb.EchoResponse(text=str(number))
        if request.text == "raise":
            raise self.error
        if request.text == "crash":
            raise RuntimeError("the password is hunter2")
        while request.text == "flood":
            yield pb.EchoResponse(text="x" * 1_000_000)
        if request.text == "forever":
            self.entered.set()
            await self.goodbye.wait()
            yield pb.EchoResponse(text="goodbye")
            await asyncio.Event().wait()

    async def Join(self, requests: Any, context: Any) -> Any:
        return pb.EchoResponse(text=" ".join([request.text async for request in requests]))

    async def Chat(self, requests: Any, context: Any) -> None:
        # The reader and writer form of a handler, beside the generator of Count.
        while (request := await context.read()) is not grpc.aio.EOF:
            if request.text == "raise":
                raise self.error
            await context.write(pb.EchoResponse(text=request.text))


async def main(settings: EchoSettings) -> None:
    """Serve until a signal."""
    if settings.greeting == "crash at start":
        raise RuntimeError(settings.greeting)
    servicer = EchoServicer()
    server = Server(settings, verifier=Keys(), policies=POLICIES)
    server.add(rpc.add_EchoServiceServicer_to_server, servicer)
    await server.serve()


if __name__ == "__main__":
    run(EchoSettings, main)
