"""A network with faults between agents, schedulers and the store: late, lost, one-way and broken."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio

from taskyard.errors import StorageUnavailable
from taskyard.v1 import lease_pb2
from taskyard.v1 import lease_service_pb2 as leases
from taskyard.v1.runner_link_service_pb2 import ConnectRequest, ConnectResponse
from taskyard_kit.auth import Kind, Principal, set_principal
from taskyard_scheduler.rpc.link import RunnerLinkServicer
from taskyard_taskdb.domain.credit import Grant
from taskyard_taskdb.rpc.credit import apply_credit
from tests.simulation.store import Store


class Weather:
    """How bad the network is; one for a whole simulation. `calm` ends every fault."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.stormy = True

    def calm(self) -> None:
        self.stormy = False

    def delay(self) -> float:
        if self.stormy and self.rng.random() < 0.03:
            return self.rng.uniform(0.5, 12.0)
        return self.rng.uniform(0.0005, 0.02)

    def fails(self, probability: float) -> bool:
        return self.stormy and self.rng.random() < probability


class Pipe:
    """One direction of a stream: ordered, delayed, and silent while it is blackholed."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._last = 0.0
        self.blackholed_until = 0.0

    def put(self, message: Any) -> None:
        loop = asyncio.get_running_loop()
        at = max(self._last, loop.time() + self._weather.delay(), self.blackholed_until)
        self._last = at
        loop.call_at(at, self._queue.put_nowait, message)

    async def get(self) -> Any:
        return await self._queue.get()


class Stream:
    """A runner's stream to one scheduler. Either end sees EOF or a break when it is over."""

    BROKEN = object()

    def __init__(self, weather: Weather) -> None:
        self.up, self.down = Pipe(weather), Pipe(weather)
        self.broken = False
        self._handler: asyncio.Task[None] | None = None

    def serve(self, servicer: RunnerLinkServicer) -> None:
        self._handler = asyncio.create_task(self._serve(servicer))

    async def _serve(self, servicer: RunnerLinkServicer) -> None:
        set_principal(Principal(Kind.RUNNER, "key", tenants=frozenset({"*"})))
        try:
            await servicer.Connect(None, self)  # type: ignore[arg-type]
        except Exception as error:
            self.down.put(error)
        else:
            self.down.put(grpc.aio.EOF)

    def break_off(self) -> None:
        """Both sides lose the connection; what is under way is lost."""
        if not self.broken:
            self.broken = True
            if self._handler is not None:
                self._handler.cancel()
            self.down._queue.put_nowait(self.BROKEN)

    # What the servicer sees as its context.

    async def read(self) -> ConnectRequest | object:
        data = await self.up.get()
        return data if data is grpc.aio.EOF else ConnectRequest.FromString(data)

    async def write(self, message: ConnectResponse | bytes) -> None:
        self.down.put(message if isinstance(message, bytes) else message.SerializeToString())


class CreditStream:
    """A scheduler's KeepCredit: both directions are late, either may break off with what is under way."""

    BROKEN = object()

    def __init__(self, store: Store, weather: Weather) -> None:
        self._weather = weather
        self._up, self._down = Pipe(weather), Pipe(weather)
        self._line = store.credit.open("scheduler", self)
        self._serving = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            apply_credit(self._line, leases.KeepCreditRequest.FromString(await self._up.get()))

    # What the scheduler calls.

    async def write(self, request: leases.KeepCreditRequest) -> None:
        if self._weather.fails(0.01):
            self._break_off()
        self._up.put(request.SerializeToString())

    async def read(self) -> leases.KeepCreditResponse | None:
        message = await self._down.get()
        if message is self.BROKEN:
            raise StorageUnavailable("unknown")
        return leases.KeepCreditResponse.FromString(message)

    def cancel(self) -> None:
        self._break_off()

    def _break_off(self) -> None:
        self._serving.cancel()
        self._line.close()
        self._down._queue.put_nowait(self.BROKEN)

    # What the credit line calls.

    def granted(self, grant: Grant, task: object) -> None:
        assert isinstance(task, lease_pb2.Assignment)
        terms = grant.terms
        message = leases.KeepCreditResponse()
        message.granted.add(
            runner_id=terms.runner_id,
            session_epoch=terms.session_epoch,
            heartbeat_id=terms.heartbeat_id,
            assignments=[task],
        )
        self._down.put(message.SerializeToString())

    def settled(self, runner_id: str) -> None:
        self._down.put(leases.KeepCreditResponse(settled=[runner_id]).SerializeToString())


class SimTaskdb:
    """The store as one scheduler reaches it: calls may be late, lost, or done with the answer lost."""

    def __init__(self, store: Store, weather: Weather) -> None:
        self._store = store
        self._weather = weather

    def keep_credit(self) -> CreditStream:
        return CreditStream(self._store, self._weather)

    async def _call(self, work: Callable[[Any], Any], request: Any) -> Any:
        await asyncio.sleep(self._weather.delay())
        if self._weather.fails(0.02):
            raise StorageUnavailable("unknown")
        response = work(request)
        await asyncio.sleep(self._weather.delay())
        if self._weather.fails(0.02):
            raise StorageUnavailable("unknown")
        return response

    async def claim_for_runners(self, request: Any) -> Any:
        return await self._call(self._store.claim_for_runners, request)

    async def report_runs(self, request: Any) -> Any:
        return await self._call(self._store.report_runs, request)

    async def renew_sessions(self, request: Any) -> Any:
        return await self._call(self._store.renew_sessions, request)

    async def open_session(self, request: Any) -> Any:
        return await self._call(self._store.open_session, request)

    async def close_session(self, request: Any) -> Any:
        return await self._call(self._store.close_session, request)

    async def append_logs(self, request: Any) -> Any:
        raise NotImplementedError

    async def watch_queue(self, scheduler_id: str) -> AsyncIterator[leases.WatchQueueResponse]:
        steps: asyncio.Queue[leases.WatchQueueResponse] = asyncio.Queue()
        self._store.watchers.append(steps.put_nowait)
        try:
            yield self._store.snapshot()
            while not self._weather.fails(0.001):
                yield await steps.get()
            raise StorageUnavailable("unknown")
        finally:
            self._store.watchers.remove(steps.put_nowait)
