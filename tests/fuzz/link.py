"""One conversation on a runner's link: a hello, then messages that are valid, mutated or damaged."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import grpc
import grpc.aio

from taskyard.v1 import lease_pb2
from taskyard.v1 import runner_link_service_pb2 as N
from tests.fuzz.messages import Mutator
from tests.fuzz.variants import vary_report
from tests.fuzz.world import RUNNERS, World
from tests.harness.rpc_requests import Objects, chunk, hello, log_batch, report

PATH = "/taskyard.v1.RunnerLinkService/Connect"
LIMIT_SECONDS = 40.0


async def converse(
    world: World, objects: Objects, mutator: Mutator, rng: random.Random, metadata: Any
) -> tuple[str, str, list[bytes]]:
    """Its code, its details, and what was sent."""
    multi: Any = world.service.channel(PATH).stream_stream(
        PATH, response_deserializer=N.ConnectResponse.FromString
    )
    call = multi(metadata=metadata, timeout=LIMIT_SECONDS)
    runner = rng.choice(RUNNERS)
    leases: list[lease_pb2.LeaseRef] = []
    reading = asyncio.create_task(_read(call, world, runner, leases))
    sent: list[bytes] = []
    try:
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
            for number in range(rng.choice((1, 2, 4, 8))):
                message = _message(number, runner, objects, leases, rng)
                sent.append(_spoiled(message, number, mutator, rng))
                await call.write(sent[-1])
                # A welcome has to arrive before an honest runner sends more; a hostile one does not wait.
                if rng.random() < 0.7:
                    await asyncio.sleep(0.02)
            if rng.random() < 0.3:
                call.cancel()
            else:
                await call.done_writing()
        await asyncio.wait([reading], timeout=LIMIT_SECONDS)
        ended = reading.done()
        code = (await call.code()).name if ended else "DEADLINE_EXCEEDED"
        details = (
            (await call.details() or "") if ended else "the stream did not end after the client's half did"
        )
    finally:
        call.cancel()
        reading.cancel()
    # A runner that left says so by cancelling. The last one is no status of the server: the client's library
    # gives it to a write that meets the end of the stream.
    served = code == "CANCELLED" or details == "Internal error from Core"
    return ("OK" if served else code), details, sent


async def _read(call: Any, world: World, runner: str, leases: list[lease_pb2.LeaseRef]) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        while (message := await call.read()) is not grpc.aio.EOF:
            world.learn(PATH, message, runner)
            leases += [assignment.lease for assignment in message.assignments.assignments]


def _message(
    number: int, runner: str, objects: Objects, leases: list[lease_pb2.LeaseRef], rng: random.Random
) -> N.ConnectRequest:
    lease = rng.choice(leases) if leases else objects.lease
    named = Objects(objects.tenant, runner=runner, lease=lease, instance_id=objects.instance_id)
    if number == 0:
        made = hello(named)
        made.hello.held.add(lease=lease, state=N.HELD_STATE_RUNNING)
        return made
    match rng.randrange(6):
        case 0 | 1:
            beat = N.Heartbeat(heartbeat_id=number, free=N.Capacity(tasks=1), full=True, held_count=1)
            beat.changed.add(lease=lease, state=N.HELD_STATE_RUNNING)
            return N.ConnectRequest(heartbeat=beat)
        case 2 | 3:
            batch = N.ReportBatch(reports=[report(named)])
            vary_report(rng, batch.reports[0])
            batch.reports[0].seq = number
            return N.ConnectRequest(reports=batch)
        case 4:
            return N.ConnectRequest(logs=log_batch(named))
        case _:
            if rng.random() < 0.5:
                return N.ConnectRequest(checkpoint_chunk=chunk(named))
            goodbye = N.RunnerGoodbye(reason=N.RUNNER_GOODBYE_REASON_SHUTDOWN, keep_leases=rng.random() < 0.5)
            return N.ConnectRequest(goodbye=goodbye)


def _spoiled(message: N.ConnectRequest, number: int, mutator: Mutator, rng: random.Random) -> bytes:
    """The bytes of a message; a hello is mostly left as it is, so that what follows is read at all."""
    chance = rng.random()
    if chance < (0.7 if number == 0 else 0.35):
        pass
    elif chance < 0.9:
        mutator.mutate(message, rng.choice((1, 2, 3)))
    elif chance < 0.96:
        message.Clear()
        mutator.fill(message, 0.3)
    else:
        return mutator.damage(message.SerializeToString())
    return message.SerializeToString()
