"""Generated calls of every public RPC and real servers: half a minute for each seed; `make fuzz` for more."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message import Message

from taskyard_scheduler.rpc.policies import POLICIES as SCHEDULER_POLICIES
from taskyard_taskdb.access_policy import POLICIES as TASKDB_POLICIES
from tests.fuzz.attack import public_rpcs
from tests.fuzz.messages import Mutator
from tests.fuzz.rpc import LOOPBACK, MIB, fuzz, leaks, service_of
from tests.fuzz.service import Service
from tests.fuzz.values import Values
from tests.fuzz.world import World
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.rpc_requests import REQUESTS, Objects, messages_of

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

SECONDS = float(os.environ.get("TASKYARD_FUZZ_SECONDS", "30"))
FRESH = int(os.environ.get("TASKYARD_FUZZ_SEED", str(time.time_ns() % 2**32)))
# So many calls have to get past every check; otherwise only the validation is tested.
SERVED = 0.35


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template, taskdb_flags=LOOPBACK) as running:
        yield running


@pytest.mark.timeout(SECONDS + 270)
@pytest.mark.parametrize("seed", [pytest.param(18, id="fixed"), pytest.param(FRESH, id="fresh")])
async def test_no_generated_call_breaks_a_server_or_another_tenant(plane: ControlPlane, seed: int) -> None:
    verdict = await fuzz(service_of(plane), seed, 1_000_000, SECONDS)
    verdict.show()
    assert not verdict.problems
    assert verdict.outcome.passed >= SERVED
    assert set(verdict.outcome.codes) == set(public_rpcs())


@pytest.mark.parametrize(
    ("readings", "leaking"),
    [
        ((132, 180, 200, 205, 208), False),
        # Something that is made once, and a collection that comes late.
        ((132, 180, 200, 250, 252), False),
        ((132, 180, 230, 260, 210), False),
        # As fast in the last quarter as in the one before.
        ((132, 160, 190, 220, 250), True),
        ((132, 200, 210, 215, 300), True),
    ],
)
def test_memory_that_grows_to_the_end_is_a_leak(readings: Sequence[int], leaking: bool) -> None:
    memory = [{"taskdb": reading * MIB, "scheduler": 70 * MIB} for reading in readings]
    assert bool(leaks(memory)) is leaking


def test_every_rpc_has_a_valid_request() -> None:
    assert set(REQUESTS) == {*TASKDB_POLICIES, *SCHEDULER_POLICIES}


def test_mutations_reach_every_field_of_a_create() -> None:
    rng, objects = random.Random(1), Objects("fuzz")
    world = World(Service("", "", ""))
    mutator, path = Mutator(Values(rng, world)), "/taskyard.v1.TaskService/CreateTask"
    reached: set[str] = set()
    for _ in range(6000):
        (message,) = messages_of(path, objects)
        mutator.mutate(message, 1)
        reached |= set(_fields(message))
    kinds = ("Task", "TaskMetadata", "TaskSpec", "Payload", "Callback", "RetryPolicy", "BackoffPolicy")
    pool = descriptor_pool.Default()
    expected = {
        field.full_name
        for kind in kinds
        for field in pool.FindMessageTypeByName(f"taskyard.v1.{kind}").fields
    }
    assert expected - reached == set()


def _fields(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        yield field.full_name
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for inner in value if field.is_repeated else [value]:
            yield from _fields(inner)
