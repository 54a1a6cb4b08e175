"""Claims through the internal API."""

from __future__ import annotations

import json

import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Yard, failed, released, started, succeeded
from taskyard.v1 import common_pb2, task_pb2
from tests.harness.logged_changes import LOGGED


async def test_a_task_runs_from_creation_to_success(yard: Yard) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    assert assignment.lease.task == name
    assert assignment.lease.generation == 1
    assert assignment.attempt == 1
    assert assignment.spec.execution.command.program == "true"
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_SCHEDULED
    (result,) = await yard.report(runner, started(assignment))
    assert result.phase == task_pb2.TASK_PHASE_RUNNING
    (result,) = await yard.report(runner, succeeded(assignment, exit_code=0))
    assert (result.phase, result.duplicate) == (task_pb2.TASK_PHASE_SUCCEEDED, False)
    done = await yard.task(name)
    assert done.status.phase == task_pb2.TASK_PHASE_SUCCEEDED
    assert done.metadata.resource_version == 4
    (again,) = await yard.report(runner, succeeded(assignment, exit_code=0))
    assert (again.phase, again.duplicate) == (task_pb2.TASK_PHASE_SUCCEEDED, True)


async def test_lease_ids_are_exact_as_doubles(yard: Yard) -> None:
    """Default ts-proto reads a 64-bit field as a number and rejects what is beyond 2^53."""
    await yard.create(20)
    runner, _ = await yard.hello()
    ids = [assignment.lease.lease_id for assignment in (await yard.claim(runner)).assignments]
    assert len(set(ids)) == 20
    assert all(0 <= lease_id < 2**53 for lease_id in ids)


async def test_structured_payload_reaches_the_runner_with_its_integers(yard: Yard) -> None:
    payload = common_pb2.Payload()
    payload.json.update({"n": 7, "x": 1.5, "deep": [1, {"m": -2}], "edge": 2**53, "huge": 1e300, "on": True})
    await yard.create(payload=payload)
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    found = json.loads(assignment.spec.payload.raw)
    assert found == {"n": 7, "x": 1.5, "deep": [1, {"m": -2}], "edge": 2**53, "huge": 1e300, "on": True}
    # Equal numbers are not enough: other languages read 7.0 into no integer.
    kinds = {key: type(value) for key, value in found.items()}
    assert kinds == {"n": int, "x": float, "deep": list, "edge": int, "huge": float, "on": bool}
    assert [type(found["deep"][0]), type(found["deep"][1]["m"])] == [int, int]


async def test_raw_payload_reaches_the_runner_byte_for_byte(yard: Yard) -> None:
    written = b'{"b": 7, "a":9007199254740993,  "c": 1.0}'
    await yard.create(payload=common_pb2.Payload(raw=written))
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    assert assignment.spec.payload.raw == written


async def test_lane_that_is_named_twice_is_claimed_once(yard: Yard) -> None:
    names = await yard.create(3)
    runner, _ = await yard.hello()
    lanes = await yard.lane_claims()
    assignments = (await yard.claim(runner, lanes=[*lanes, *lanes])).assignments
    assert [assignment.lease.task for assignment in assignments] == names


async def test_start_and_outcome_together_are_two_changes(yard: Yard, taskdb: RunningTaskDb) -> None:
    names = await yard.create(3)
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner)).assignments
    assert [a.lease.task for a in assignments] == names
    reports = [report for a in assignments for report in (started(a), succeeded(a))]
    results = await yard.report(runner, *reports)
    assert [r.phase for r in results] == [3, 10] * 3
    assert [(await yard.task(name)).metadata.resource_version for name in names] == [4, 4, 4]
    rows = await taskdb.rows(
        f"SELECT resource_id, version FROM {LOGGED} WHERE resource_kind = 1 ORDER BY resource_id, id"
    )
    assert [version for _, version in rows] == [1, 2, 3, 4] * 3


@pytest.mark.seed("S1.49", "S1.52")
async def test_a_transient_failure_is_retried_after_its_back_off(yard: Yard, taskdb: RunningTaskDb) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    results = await yard.report(runner, started(assignment), failed(assignment))
    assert [r.phase for r in results] == [3, 1]
    task = await yard.task(name)
    assert task.status.pending_reason == task_pb2.PENDING_REASON_BACKOFF
    assert task.status.retry_count == 1
    assert not (await yard.claim(runner)).assignments
    assert await taskdb.rows("SELECT kind FROM timers") == [(1,)]


async def test_a_released_task_is_claimed_again_with_the_next_generation(yard: Yard) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (first,) = (await yard.claim(runner)).assignments
    await yard.report(runner, released(first))
    (second,) = (await yard.claim(runner)).assignments
    assert (second.lease.task, second.lease.generation) == (name, 2)
    assert second.lease.lease_id != first.lease.lease_id
    (stale,) = await yard.report(runner, started(first))
    assert stale.error.code == 10
    assert "STALE_GENERATION" in str(stale.error)


async def test_a_repeated_pop_returns_the_leases_of_the_first(yard: Yard) -> None:
    await yard.create(3)
    runner, _ = await yard.hello()
    lanes = await yard.lane_claims()
    first = await yard.claim(runner, 2, lanes=lanes, request_id="once")
    again = await yard.claim(runner, 2, lanes=lanes, request_id="once")
    assert [a.lease for a in again.assignments] == [a.lease for a in first.assignments]
    assert len((await yard.claim(runner, 2, lanes=lanes, request_id="twice")).assignments) == 1


async def test_superseded_session_claims_nothing(yard: Yard) -> None:
    await yard.create()
    runner, _ = await yard.hello()
    lanes = await yard.lane_claims()
    runner.epoch += 1
    result = await yard.claim(runner, lanes=lanes)
    assert not result.assignments
    assert "SESSION_SUPERSEDED" in str(result.error)


async def test_response_stays_below_the_message_limit(yard: Yard, taskdb: RunningTaskDb) -> None:
    payload = common_pb2.Payload(raw=b'"' + b"x" * 900_000 + b'"')
    names = await yard.create(7, payload=payload)
    runner, _ = await yard.hello()
    lanes = await yard.lane_claims()
    claimed: list[str] = []
    for _ in range(3):
        result = await yard.claim(runner, lanes=lanes)
        assert result.ByteSize() < 4 * 1024 * 1024
        assert bool(result.drained_lanes) == (len(claimed) + len(result.assignments) == 7)
        claimed += [a.lease.task for a in result.assignments]
    assert claimed == names
    assert not await taskdb.rows("SELECT FROM queue")


async def test_packed_assignments_are_the_messages_of_the_same_tasks(yard: Yard) -> None:
    """Those that the claim alone describes, and those for which more is read or changed."""
    payload = common_pb2.Payload()
    payload.json.update({"n": 7})
    await yard.create(total_timeout=Duration(seconds=500))
    await yard.create(payload=payload, resources=common_pb2.Resources(cpu_millis=50))
    await yard.create(payload=common_pb2.Payload(raw=json.dumps("x" * 20_000).encode()))
    await yard.create(task_type="typed", env=[common_pb2.EnvVar(name="LONG", value="y" * 200)])
    runner, _ = await yard.hello()
    lanes = await yard.lane_claims()
    packed = (await yard.claim(runner, request_id="1", lanes=lanes)).assignments
    repeated = (await yard.claim(runner, request_id="1", lanes=lanes, packed=False)).assignments
    messages = {one.lease.task: one for one in repeated}
    assert len(packed) == len(messages) == 4
    for one in packed:
        other = messages[one.lease.task]
        # A repeat returns what is left of them.
        assert one.lease_ttl.seconds == 15 and other.lease_ttl.seconds in (14, 15)
        assert one.total_timeout.seconds - other.total_timeout.seconds in (0, 1)
        other.lease_ttl.CopyFrom(one.lease_ttl)
        other.total_timeout.CopyFrom(one.total_timeout)
        if not one.HasField("total_timeout"):
            other.ClearField("total_timeout")
        other.heartbeat_id = one.heartbeat_id
        assert one == other
