"""Messages of a scheduler that no agent expects: each is survived, and work goes on."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.runner.tests.runner_process import RunnerProcess, command
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1 import lease_pb2, runner_pb2
from taskyard.v1 import runner_link_service_pb2 as link

FAR = 253_402_300_800  # the year 10000
HUGE = 2**62
EXTREMES = {
    FieldDescriptor.CPPTYPE_INT32: (0, 1, -1, 2**31 - 1, -(2**31)),
    FieldDescriptor.CPPTYPE_INT64: (0, 1, -1, HUGE, 2**63 - 1, -(2**63)),
    FieldDescriptor.CPPTYPE_UINT32: (0, 1, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 1, 2**64 - 1),
    FieldDescriptor.CPPTYPE_DOUBLE: (0.0, -1.0, 1e308, float("inf"), float("nan")),
    FieldDescriptor.CPPTYPE_FLOAT: (0.0, -1.0, float("inf"), float("nan")),
    FieldDescriptor.CPPTYPE_BOOL: (False, True),
    FieldDescriptor.CPPTYPE_STRING: (
        "",
        "x",
        "a/b/c",
        "tenants/t/tasks/x",
        "\0",
        "\x1b[2J",
        "../..",
        "é" * 99,
    ),
}
MESSAGES: dict[str, dict[str, Any]] = {
    "a drain in the year 10000": {
        "command": link.Command(drain=runner_pb2.DrainRequest(deadline=Timestamp(seconds=FAR)))
    },
    "a drain before all time": {
        "command": link.Command(drain=runner_pb2.DrainRequest(deadline=Timestamp(seconds=-HUGE)))
    },
    "an ack with a lease of 2^62 s": {
        "heartbeat_ack": link.HeartbeatAck(
            heartbeat_id=1,
            lease_ttl=Duration(seconds=HUGE),
            heartbeat_interval=Duration(seconds=HUGE, nanos=-1),
        )
    },
    "a goodbye for 2^62 s": {"goodbye": link.ServerGoodbye(reconnect_after=Duration(seconds=-HUGE))},
    "a task without a name": {"assignments": link.Assignments(assignments=[lease_pb2.Assignment()])},
    "windows below nothing": {"flow": link.FlowControl(max_unacked_reports=-1, max_unacked_bytes=-HUGE)},
}


async def canary(peer: SchedulerPeer, runner: RunnerProcess, agent: int) -> None:
    """The same agent opens another session and runs a task there."""
    count = len(peer.sessions)
    peer.session.send(command=link.Command(undrain=link.UndrainCommand()))
    peer.session.outbox.put_nowait(None)
    await peer.next_session(count + 1)
    assert (await peer.outcome(peer.assign(command("true")))).WhichOneof("report") == "succeeded"
    assert runner.agent_pid == agent


@pytest.mark.parametrize("name", MESSAGES)
async def test_an_agent_survives(peer: SchedulerPeer, runner: RunnerProcess, name: str) -> None:
    agent = runner.agent_pid
    peer.session.send(**MESSAGES[name])
    await canary(peer, runner, agent)


async def test_a_drain_in_the_year_10000_that_a_welcome_repeats_is_kept_and_lifted(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    agent = runner.agent_pid
    peer.welcome = {"drain": runner_pb2.DrainRequest(deadline=Timestamp(seconds=FAR))}
    peer.session.outbox.put_nowait(None)
    session = await peer.next_session(2)
    await peer.until(lambda: session.heartbeats and session.heartbeats[-1].free.tasks == 0)
    peer.welcome = {}
    await canary(peer, runner, agent)


@pytest.mark.parametrize("seed", range(3))
async def test_an_agent_survives_messages_made_at_random(
    peer: SchedulerPeer, runner: RunnerProcess, seed: int
) -> None:
    agent, rng = runner.agent_pid, random.Random(seed)
    for _ in range(150):
        message = link.ConnectResponse()
        fill(message, rng, 0)
        if message.command.drain.exit_when_drained or message.WhichOneof("message") in ("goodbye", "welcome"):
            continue
        peer.session.outbox.put_nowait(message)
    await canary(peer, runner, agent)


def fill(message: Message, rng: random.Random, depth: int) -> None:
    """Set fields of a message to extremes, of each oneof one."""
    descriptor = message.DESCRIPTOR
    chosen: list[Any] = [rng.choice(oneof.fields) for oneof in descriptor.oneofs]
    chosen += [f for f in descriptor.fields if f.containing_oneof is None and rng.random() < 0.6]
    for field in chosen:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        if field.message_type is not None:
            if depth < 6:
                target = getattr(message, field.name)
                fill(target.add() if field.is_repeated else target, rng, depth + 1)
                if not field.is_repeated:
                    target.SetInParent()
            continue
        value = some(field, rng)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)


def some(field: Any, rng: random.Random) -> Any:
    if field.enum_type is not None:
        return rng.choice([*field.enum_type.values_by_number, 77])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice([b"", b"\0\xff", bytes(100)])
    return rng.choice(EXTREMES[field.cpp_type])
