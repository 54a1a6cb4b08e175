"""The simulation's store against taskdb over PostgreSQL: the same calls have the same results."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Client, command
from taskyard.channel import client_channel_options, open_channel
from taskyard.errors import TaskyardError
from taskyard.status import from_status
from taskyard.v1 import lease_pb2, lease_service_pb2, session_service_pb2
from taskyard_scheduler.link_config import duration
from taskyard_scheduler.taskdb import MAX_RECEIVE_BYTES, Taskdb
from taskyard_taskdb.domain.words import Overlap
from tests.harness.control_plane import control_plane
from tests.harness.link_runner import registration
from tests.simulation.store import Store

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

SEEDS = 25
STEPS = 40
RUNNERS = ("a", "b")
# Nothing expires while the two are compared; time is what the simulation is for.
LONG = duration(3000)
RELEASES = (
    lease_pb2.RELEASE_REASON_DRAINED,
    lease_pb2.RELEASE_REASON_NO_CAPACITY,
    lease_pb2.RELEASE_REASON_LOST,
)


class Side:
    """One of the two: its lane, and the leases it has given out by (task, generation)."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.lane = lease_service_pb2.LaneKey()
        self.epochs: dict[str, int] = {}
        self.leases: dict[tuple[str, int], lease_pb2.LeaseRef] = {}

    async def call(self, method: str, request: Any) -> Any:
        raise NotImplementedError


class StoreSide(Side):
    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self.store = Store(time.time, random.Random(0))
        self.lane.CopyFrom(self.store.lane().key)

    async def create(self, name: str, overlap: Overlap) -> None:
        self.store.create(name, overlap=overlap)

    async def call(self, method: str, request: Any) -> Any:
        return getattr(self.store, method)(request)


class SqlSide(Side):
    def __init__(self, prefix: str, taskdb: Taskdb, client: Client, key_id: str) -> None:
        super().__init__(prefix)
        self.taskdb = taskdb
        self.client = client
        self.key_id = key_id

    async def create(self, name: str, overlap: Overlap) -> None:
        policy: Any = {Overlap.FORBID: "forbid", Overlap.ALLOW: "allow"}[overlap]
        await self.client.create(
            command("true", id=name, overlap=policy, runner_labels={"seed": self.prefix})
        )

    async def find_lane(self) -> None:
        async for step in self.taskdb.watch_queue("equivalence"):
            classes = {c.class_id: c.placement.required.selector for c in step.classes}
            for lane in step.lanes:
                if classes[lane.key.class_id].match_labels.get("seed") == self.prefix:
                    self.lane.CopyFrom(lane.key)
            break

    async def call(self, method: str, request: Any) -> Any:
        return await getattr(self.taskdb, method)(request)


async def step(side: Side, rng: random.Random, names: list[str]) -> object:
    """One random call; what came of it, in words that are the same on both sides."""
    runner = rng.choice(RUNNERS)
    kind = rng.choices(["hello", "claim", "report", "renew", "close"], [2, 6, 12, 3, 1])[0]
    try:
        return await {"hello": hello, "claim": claim, "report": report, "renew": renew, "close": close}[kind](
            side, rng, runner, names
        )
    except TaskyardError as error:
        return kind, error.reason


def some_leases(side: Side, rng: random.Random) -> list[lease_pb2.LeaseRef]:
    return [side.leases[key] for key in sorted(side.leases) if rng.random() < 0.5]


def verdict_words(verdicts: Any) -> list[tuple[str, int]]:
    return sorted((v.lease.task, v.action) for v in verdicts)


async def hello(side: Side, rng: random.Random, runner: str, names: list[str]) -> object:
    request = session_service_pb2.OpenSessionRequest(
        scheduler_id="s",
        runner_id=f"{side.prefix}-{runner}",
        key_id=getattr(side, "key_id", "key"),
        instance_id=str(uuid.UUID(int=rng.choice([1, 1, 1, 2]), version=4)),
        takeover=rng.random() < 0.7,
        registration=registration(4),
        held=some_leases(side, rng),
        lease_duration=LONG,
    )
    response = await side.call("open_session", request)
    side.epochs[runner] = response.session_epoch
    return "hello", response.session_epoch, verdict_words(response.verdicts)


async def claim(side: Side, rng: random.Random, runner: str, names: list[str]) -> object:
    count = rng.randint(1, 3)
    lane = lease_service_pb2.LaneClaim(lane=side.lane)
    tenant = lease_service_pb2.TenantClaim(tenant="default", max_tasks=count, lanes=[lane])
    wanted = lease_service_pb2.RunnerClaim(
        runner_id=f"{side.prefix}-{runner}",
        session_epoch=side.epochs.get(runner, 7),
        max_tasks=count,
        lease_duration=LONG,
        tenants=[tenant],
    )
    request = lease_service_pb2.ClaimForRunnersRequest(
        scheduler_id="s", request_id=f"{side.prefix}-{rng.randint(1, 12)}", runners=[wanted]
    )
    (result,) = (await side.call("claim_for_runners", request)).results
    for assignment in result.assignments:
        side.leases[(assignment.lease.task, assignment.lease.generation)] = assignment.lease
    given = [(a.lease.task, a.lease.generation, a.attempt) for a in result.assignments]
    return "claim", sorted(given), from_status(result.error).reason if result.error.code else ""


async def report(side: Side, rng: random.Random, runner: str, names: list[str]) -> object:
    if not side.leases:
        return "nothing"
    ref = lease_pb2.LeaseRef()
    ref.CopyFrom(side.leases[rng.choice(sorted(side.leases))])
    if rng.random() < 0.1:
        ref.lease_id += 1
    message = lease_pb2.RunReport(lease=ref)
    kind = rng.choice(["started", "started", "succeeded", "released"])
    getattr(message, kind).SetInParent()
    if kind == "released":
        message.released.reason = rng.choice(
            [
                lease_pb2.RELEASE_REASON_DRAINED,
                lease_pb2.RELEASE_REASON_NO_CAPACITY,
                lease_pb2.RELEASE_REASON_LOST,
            ]
        )
    held = lease_service_pb2.HolderReport(runner_id=f"{side.prefix}-{runner}", report=message)
    request = lease_service_pb2.ReportRunsRequest(reports=[held])
    (result,) = (await side.call("report_runs", request)).results
    reason = from_status(result.error).reason if result.error.code else ""
    return kind, ref.task, ref.generation, result.phase, result.duplicate, reason


async def renew(side: Side, rng: random.Random, runner: str, names: list[str]) -> object:
    renewal = session_service_pb2.SessionRenewal(
        runner_id=f"{side.prefix}-{runner}",
        session_epoch=side.epochs.get(runner, 7),
        lease_duration=LONG,
        listed=some_leases(side, rng),
    )
    request = session_service_pb2.RenewSessionsRequest(scheduler_id="s", sessions=[renewal])
    (result,) = (await side.call("renew_sessions", request)).results
    listed = [v for v in result.verdicts if any(v.lease == ref for ref in renewal.listed)]
    return "renew", result.lost, sorted(set(verdict_words(listed)))


async def close(side: Side, rng: random.Random, runner: str, names: list[str]) -> object:
    request = session_service_pb2.CloseSessionRequest(
        runner_id=f"{side.prefix}-{runner}", session_epoch=side.epochs.get(runner, 7)
    )
    await side.call("close_session", request)
    return "closed"


@asynccontextmanager
async def sql_sides(server: PostgresServer, template: str) -> AsyncIterator[Any]:
    with control_plane(server, template, schedulers=0) as plane:
        address, key = plane.taskdbs[0].address, plane.keys["scheduler"]
        options = client_channel_options(MAX_RECEIVE_BYTES)
        async with plane.client() as client, open_channel(address, key=key, options=options) as channel:
            key_id = plane.keys["runner"].split("_")[1]
            yield lambda prefix: SqlSide(prefix, Taskdb(channel), client, key_id)


@pytest.mark.timeout(300)
async def test_the_store_returns_the_same_responses_as_sql(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    async with sql_sides(postgres_server, migrated_template) as make_sql:
        for seed in range(SEEDS):
            sides = (StoreSide(f"s{seed}"), make_sql(f"s{seed}"))
            names = [f"s{seed}-t{n}" for n in range(6)]
            overlaps = random.Random(seed).choices([Overlap.FORBID, Overlap.ALLOW], k=6)
            for name, overlap in zip(names, overlaps, strict=True):
                for side in sides:
                    await side.create(name, overlap)
            await sides[1].find_lane()
            generators = [random.Random(seed) for _ in sides]
            trail = []
            for _ in range(STEPS):
                ours, theirs = [
                    await step(side, rng, names) for side, rng in zip(sides, generators, strict=True)
                ]
                trail.append(theirs)
                assert ours == theirs, f"seed {seed} after {trail}"
