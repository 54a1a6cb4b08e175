"""Calls of every public RPC with valid, mutated, random and damaged requests, and what came back."""

from __future__ import annotations

import asyncio
import base64
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.protobuf import json_format, message_factory
from google.protobuf.message import DecodeError, Message

from taskyard_kit.auth import Kind, Policy
from taskyard_scheduler.rpc.policies import POLICIES as SCHEDULER_POLICIES
from taskyard_taskdb.access_policy import POLICIES as TASKDB_POLICIES
from tests.fuzz import link
from tests.fuzz.messages import Mutator, seeded
from tests.fuzz.service import bearer
from tests.fuzz.values import Values
from tests.fuzz.variants import varied
from tests.fuzz.world import TENANTS, World
from tests.harness.rpc_requests import Objects, messages_of, method_of

PARALLEL = 8
# A call that takes longer hangs.
LIMIT_SECONDS = 40.0
# They wait as long as their request asks for; a client that leaves early is no finding.
WAITING = {"/taskyard.v1.TaskService/WaitTask": 0.3, "/taskyard.v1.WorkService/ClaimTasks": 0.5}
# A followed stream has no end: it is read for so long.
STREAM_SECONDS, STREAM_MESSAGES = 0.15, 20
# What the others need more of: tasks, leases, ended tasks.
WEIGHTS = {"CreateTask": 6, "ClaimTasks": 3, "ReportWork": 3, "CancelTask": 2, "Connect": 3}
WEIGHTS |= dict.fromkeys(("CreateTaskType", "CreateSchedule", "CreateTenant", "CreateGlobalTask"), 2)
DEFECTS = {"INTERNAL", "UNKNOWN", "UNIMPLEMENTED", "UNAVAILABLE"}
OPEN = "OPEN"


def public_rpcs() -> dict[str, Policy]:
    """The RPCs that keys of tenants, administrators and runners may call."""
    outside = {Kind.TENANT, Kind.ADMIN, Kind.RUNNER}
    policies = {**TASKDB_POLICIES, **SCHEDULER_POLICIES}
    return {path: policy for path, policy in policies.items() if policy.kinds & outside}


@dataclass
class Finding:
    """Something that must not happen, with the first request that caused it."""

    what: str
    request: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.count} x {self.what}\n    {self.request}"


@dataclass
class Outcome:
    """The codes of all calls by RPC, how long they took, and the findings by what they are."""

    codes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    findings: dict[str, Finding] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return sum(counter.total() for counter in self.codes.values())

    @property
    def passed(self) -> float:
        """The share of calls that got past every check: an answer, or a stream that was served."""
        served = sum(counter["OK"] + counter[OPEN] for counter in self.codes.values())
        return served / max(1, self.calls)

    def add(self, what: str, request: str) -> None:
        # Ids differ between two cases of one defect.
        key = re.sub(r"[0-9a-f]{12,}", "…", what)
        if key in self.findings:
            self.findings[key].count += 1
        else:
            self.findings[key] = Finding(what, request)

    def table(self) -> Iterator[str]:
        """Lines with the mean time and the share of each code per RPC."""
        for path, counter in sorted(self.codes.items()):
            total = counter.total()
            shares = " ".join(f"{code} {100 * count / total:.0f}%" for code, count in counter.most_common())
            mean = 1000 * self.seconds[path] / total
            yield f"{path.rpartition('.')[2]:40} {total:6} {mean:6.0f} ms  {shares}"


class Attack:
    """One run: `calls` at most, for `seconds` at most."""

    def __init__(self, world: World, seed: int, calls: int, seconds: float) -> None:
        self.world = world
        self.outcome = Outcome()
        self._policies = public_rpcs()
        self._paths = [
            path for path in self._policies for _ in range(WEIGHTS.get(path.rpartition("/")[2], 1))
        ]
        self._seed = seed
        self._calls = iter(range(calls))
        self._end = time.monotonic() + seconds

    async def run(self) -> Outcome:
        """Make the calls."""
        async with asyncio.TaskGroup() as group:
            for number in range(PARALLEL):
                group.create_task(self._work(seeded(self._seed, str(number))))
        return self.outcome

    async def _work(self, rng: random.Random) -> None:
        mutator = Mutator(Values(rng, self.world))
        for _ in self._calls:
            if time.monotonic() > self._end:
                return
            path = rng.choice(self._paths)
            objects = self.world.objects(rng, path)
            metadata = self._metadata(rng, path, objects)
            began = time.monotonic()
            if path.endswith("/Connect"):
                code, details, sent = await link.converse(self.world, objects, mutator, rng, metadata)
            else:
                sent = _requests(rng, mutator, path, objects, self.world)
                code, details = await self._call(path, sent, metadata, objects)
            self.outcome.codes[path][code] += 1
            self.outcome.seconds[path] += time.monotonic() - began
            late = code == "DEADLINE_EXCEEDED" and path not in WAITING
            if code in DEFECTS or late:
                self.outcome.add(f"{path} {code}: {details}", shown_request(path, sent))

    def _metadata(self, rng: random.Random, path: str, objects: Objects) -> tuple[tuple[str, str], ...]:
        kinds = sorted(self._policies[path].kinds & {Kind.TENANT, Kind.ADMIN, Kind.RUNNER}, reverse=True)
        kind = kinds[0] if rng.random() < 0.8 else rng.choice(kinds)
        if rng.random() < 0.02:
            kind = rng.choice((Kind.TENANT, Kind.RUNNER))
        keys = self.world.keys[kind, objects.tenant if objects.tenant in TENANTS else TENANTS[0]]
        key = keys[0] if rng.random() < 0.95 else rng.choice(keys)
        is_flat = ".compat." in path
        return bearer("" if rng.random() < 0.005 else key, objects.tenant if is_flat else "")

    async def _call(
        self, path: str, messages: list[bytes], metadata: tuple[tuple[str, str], ...], objects: Objects
    ) -> tuple[str, str]:
        """The code and the details of a call."""
        method = method_of(path)
        answer = message_factory.GetMessageClass(method.output_type)
        channel = self.world.service.channel(path)
        options: Mapping[str, Any] = {"metadata": metadata, "timeout": WAITING.get(path, LIMIT_SECONDS)}
        try:
            if method.server_streaming:
                stream: Any = channel.unary_stream(path, response_deserializer=answer.FromString)
                return await self._read(path, stream(messages[0], **options))
            multi: Any = (
                channel.stream_unary(path, response_deserializer=answer.FromString)
                if method.client_streaming
                else channel.unary_unary(path, response_deserializer=answer.FromString)
            )
            response = await multi(iter(messages) if method.client_streaming else messages[0], **options)
        except grpc.aio.AioRpcError as error:
            return _code(error), error.details() or ""
        self._accept(path, response, objects)
        return "OK", ""

    async def _read(self, path: str, call: Any) -> tuple[str, str]:
        """Read a stream for a moment; OPEN if it goes on."""
        try:
            async with asyncio.timeout(STREAM_SECONDS):
                for _ in range(STREAM_MESSAGES):
                    message = await call.read()
                    if message is grpc.aio.EOF:
                        code = await call.code()
                        return code.name, await call.details() or ""
                    self._accept(path, message)
        except TimeoutError:
            pass
        finally:
            call.cancel()
        return OPEN, ""

    def _accept(self, path: str, response: Message, objects: Objects | None = None) -> None:
        runner, tenant = (objects.runner, objects.tenant) if objects else ("", "")
        self.world.learn(path, response, runner, tenant)
        try:
            json_format.MessageToJson(response)
        except (ValueError, json_format.Error) as error:
            self.outcome.add(f"{path} an answer that is no JSON: {error}", str(response)[:1000])


def _code(error: grpc.aio.AioRpcError) -> str:
    """The server's code; a write that meets the end of its stream gets one of the client's library."""
    return "CANCELLED" if error.details() == "Internal error from Core" else error.code().name


def _requests(rng: random.Random, mutator: Mutator, path: str, objects: Objects, world: World) -> list[bytes]:
    """The messages of a call as they are sent."""
    chance = rng.random()
    messages = messages_of(path, objects)
    for message in messages:
        varied(rng, path, message, world.receiver, objects)
        if 0.30 < chance < 0.85:
            mutator.mutate(message, rng.choice((1, 1, 1, 2, 3)))
        elif 0.85 <= chance < 0.95:
            message.Clear()
            mutator.fill(message, rng.choice((0.1, 0.3, 0.7)))
    encoded = [message.SerializeToString() for message in messages]
    if len(encoded) == 1 and method_of(path).client_streaming:
        encoded *= rng.choice((0, 1, 1, 1, 2))
    return [mutator.damage(data) for data in encoded] if chance >= 0.95 else encoded


def shown_request(path: str, messages: list[bytes]) -> str:
    """A request for a report: as text if it can be parsed, else as base64."""
    kind = message_factory.GetMessageClass(method_of(path).input_type)
    shown = []
    for data in messages:
        try:
            shown.append(str(kind.FromString(data)).replace("\n", " ")[:1500])
        except DecodeError:
            shown.append(f"base64 {base64.b64encode(data[:400]).decode()}")
    return " | ".join(shown)
