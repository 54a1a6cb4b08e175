"""KeepCredit: which new tasks are leased in the transaction that creates them, and which are not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from services.taskdb.tests.conftest import RunningTaskDb, make_yard, new_task
from services.taskdb.tests.credit_stream import CreditStream, open_credit
from services.taskdb.tests.rpc.test_create_queues import until_waiting
from services.taskdb.tests.yard import Runner, Yard, started, succeeded
from taskyard.errors import InvalidArgument, ServerDraining
from taskyard.status import from_rpc_error
from taskyard.v1 import common_pb2, lease_service_pb2, task_pb2, task_service_pb2
from taskyard_kit.failpoint import Failpoint
from taskyard_taskdb import failpoints
from taskyard_taskdb.storage.connection import PatientConnection
from taskyard_taskdb.storage.statements import statements
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.lease_expiry import ExpirySweep, LeasePages
from tests.harness.logged_changes import LOGGED

SCHEDULED, PENDING = task_pb2.TASK_PHASE_SCHEDULED, task_pb2.TASK_PHASE_PENDING


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def runner(yard: Yard) -> Runner:
    return (await yard.hello())[0]


@pytest.fixture
async def credit(quiet: RunningTaskDb, yard: Yard, runner: Runner) -> AsyncIterator[CreditStream]:
    made = await open_credit(quiet, yard, runner)
    yield made
    made._call.cancel()


class Held:
    """A failpoint that is reached and not passed until `release`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reached = asyncio.Event()
        self._released = threading.Event()

    def act(self, _: str) -> None:
        self._loop.call_soon_threadsafe(self._reached.set)
        self._released.wait(15)

    async def reached(self) -> None:
        async with asyncio.timeout(15):
            await self._reached.wait()

    def release(self) -> None:
        self._released.set()


@contextmanager
def hold(point: Failpoint) -> Iterator[Held]:
    """Hold the first that reaches a failpoint."""
    held = Held()
    point._set(held.act, 1)
    try:
        yield held
    finally:
        held.release()
        point._set(None, 0)


async def create(yard: Yard, **fields: Any) -> task_pb2.Task:
    """A new task as its creator gets it."""
    made: task_pb2.Task = (await yard.tenant.tasks.CreateTask(new_task(**fields))).task
    return made


async def is_queued(taskdb: RunningTaskDb, task: task_pb2.Task) -> bool:
    """Whether a task went the ordinary way."""
    queued = await taskdb.rows("SELECT FROM queue WHERE task_id = %s", task.metadata.id)
    leased = await taskdb.rows("SELECT FROM leases WHERE task_id = %s", task.metadata.id)
    assert len(queued) + len(leased) == 1
    assert (task.status.phase == PENDING) == bool(queued)
    return bool(queued)


async def test_a_new_task_is_leased_when_it_is_created_and_runs(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner)
    made = await create(yard, request_id="once", labels={"a": "b"})
    assert not await is_queued(quiet, made)
    assert (made.status.phase, made.metadata.resource_version) == (SCHEDULED, 2)
    read = await yard.task(made.name)
    assert made == read
    (assignment,) = await credit.lease()
    assert assignment.lease.task == made.name
    assert (assignment.lease.generation, assignment.attempt) == (1, 1)
    assert (assignment.labels["a"], assignment.lease_ttl.seconds) == ("b", 15)
    assert assignment.spec.execution.command.program == "true"
    results = await yard.report(runner, started(assignment), succeeded(assignment))
    assert [result.phase for result in results] == [3, 10]
    changes = await quiet.rows(
        f"SELECT version, event, phase, actor_id FROM {LOGGED} WHERE resource_id = %s ORDER BY id",
        made.metadata.id,
    )
    assert [change[0] for change in changes] == [1, 2, 3, 4]
    assert changes[1][2:] == (SCHEDULED, "scheduler-1")


async def test_a_repeated_request_gets_the_task_and_no_second_place(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 2)
    first = await create(yard, request_id="once")
    again = await create(yard, request_id="once")
    assert again.name == first.name
    other = await create(yard)
    assert not await is_queued(quiet, other)
    assert [a.lease.task for a in await credit.lease(2)] == [first.name, other.name]


async def test_a_create_on_credit_is_one_exchange_with_the_database(
    quiet: RunningTaskDb,
    yard: Yard,
    runner: Runner,
    credit: CreditStream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exchanges: list[str] = []
    wait = PatientConnection.wait

    def count(self: PatientConnection, gen: Any, *rest: Any, **options: Any) -> Any:
        if "Batcher._work" in str(asyncio.current_task()):
            exchanges.append(gen.__name__)
        return wait(self, gen, *rest, **options)

    monkeypatch.setattr(PatientConnection, "wait", count)
    await credit.give(runner)
    retry = common_pb2.RetryPolicy(restart=common_pb2.RESTART_POLICY_ON_FAILURE, max_retries=2)
    assert not await is_queued(quiet, await create(yard, request_id="once", retry=retry))
    # With autocommit there is neither BEGIN nor COMMIT; to set it exchanges nothing.
    assert exchanges == ["_set_autocommit_gen", "_execute_gen", "_set_autocommit_gen"]


async def test_who_had_to_wait_for_its_request_id_is_not_leased(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    """The gates that the statement reads are as old as its beginning: one may have closed since."""
    await credit.give(runner)
    async with quiet.pool.transaction() as tx:
        await tx.execute(
            "INSERT INTO idempotency_keys (tenant_id, method, request_id, task_id, body_hash) "
            "VALUES ('default', 1, 'once', 'other', '')"
        )
        creating = asyncio.create_task(create(yard, request_id="once"))
        await until_waiting(quiet)
        await quiet.execute("UPDATE tenants SET queue_paused = true")
        # Longer than what a lock takes that nobody waits for.
        await tx.execute("SELECT pg_sleep(0.15)")
        await tx.execute("DELETE FROM idempotency_keys")
    assert await is_queued(quiet, await creating)


async def test_each_place_is_used_once(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 2)
    made = await asyncio.gather(*(create(yard) for _ in range(5)))
    assert sorted([await is_queued(quiet, task) for task in made]) == [False, False, True, True, True]
    ready = {task.name: task.metadata.create_time.ToNanoseconds() for task in made}
    first = {assignment.lease.task for assignment in await credit.lease(2)}
    assert max(ready[name] for name in first) < min(ready[name] for name in ready.keys() - first)


async def test_an_unstarted_lease_expires_and_the_task_is_claimed_again(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner)
    made = await create(yard)
    (first,) = await credit.lease()
    await quiet.execute("UPDATE leases SET expire_time = now() - interval '1 second'")
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    pages = LeasePages(quiet.pool, quiet.taskdb._after_commit, page=2)
    await ExpirySweep(quiet.pool, pages).run(leadership)
    (again,) = (await yard.claim(runner)).assignments
    assert (again.lease.task, again.lease.generation) == (made.name, 2)
    (stale,) = await yard.report(runner, started(first))
    assert stale.error.code == 10


# ---- the fairness guard


async def test_a_task_does_not_overtake_one_that_waits_in_its_lane(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    waiting = await create(yard)
    await credit.give(runner)
    assert await is_queued(quiet, waiting)
    assert await is_queued(quiet, await create(yard))


async def test_without_the_look_at_the_lane_it_would_overtake(
    quiet: RunningTaskDb,
    yard: Yard,
    runner: Runner,
    credit: CreditStream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql = statements()["insert_eager_tasks"]
    guard = "q.ready_time >= i.after_time"
    assert guard in sql
    monkeypatch.setitem(statements(), "insert_eager_tasks", sql.replace(guard, f"{guard} AND false"))
    with pytest.raises(AssertionError):
        await test_a_task_does_not_overtake_one_that_waits_in_its_lane(quiet, yard, runner, credit)


async def test_a_task_of_a_batch_does_not_overtake_one_whose_runner_is_not_to_be_had(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    other, _ = await yard.hello("runner-2")
    await credit.give(runner)
    await credit.give(other)
    request = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default",
        requests=[new_task(parent="") for _ in range(2)],
        view=task_service_pb2.TASK_VIEW_BASIC,
    )
    async with quiet.pool.transaction() as tx:
        await tx.execute("SELECT FROM sessions WHERE runner_id = 'runner-1' FOR UPDATE")
        made = await yard.tenant.tasks.BatchCreateTasks(request)
    assert [await is_queued(quiet, result.created.task) for result in made.results] == [True, True]


async def test_no_credit_is_used_until_work_that_waits_was_considered(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner)
    other_lane = await create(yard, slot="s", priority=20)
    assert await is_queued(quiet, other_lane)
    assert await is_queued(quiet, await create(yard))
    await yard.claim(runner)
    await credit.send()
    assert not await is_queued(quiet, await create(yard))


async def test_a_position_of_another_replica_counts_for_nothing(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner)
    await credit.send(position=10_000, replica_id="another")
    assert await is_queued(quiet, await create(yard))


async def test_the_queue_watch_tells_how_far_it_was_read(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    request = lease_service_pb2.WatchQueueRequest(scheduler_id=yard.scheduler_id)
    watch = yard.scheduler.leases.WatchQueue(request)
    first = (await watch.read()).position
    assert (first.replica_id, first.number) == (
        quiet.taskdb.credit.replica_id,
        quiet.taskdb.credit.position,
    )
    await create(yard)
    async with asyncio.timeout(15):
        step = await watch.read()
    assert step.position.number == quiet.taskdb.credit.position == first.number + 1
    assert [lane.backlog for lane in step.lanes] == [1]
    watch.cancel()


# ---- the credit fence


async def test_a_session_that_was_superseded_gets_nothing(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner)
    await yard.hello(runner)
    assert await is_queued(quiet, await create(yard))


async def test_a_session_that_has_ended_or_drains_gets_nothing(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 9)
    for change, undo in (
        ("expire_time = now() - interval '1 s'", "expire_time = now() + interval '30 s'"),
        ("closed = true", "closed = false"),
        ("draining = true", "draining = false"),
    ):
        await quiet.execute(f"UPDATE sessions SET {change}")
        task = await create(yard)
        assert await is_queued(quiet, task)
        await quiet.execute(f"UPDATE sessions SET {undo}")
        await yard.claim(runner)
        await credit.send()
    assert not await is_queued(quiet, await create(yard))


async def test_without_the_fence_an_ended_session_would_get_a_lease(
    quiet: RunningTaskDb,
    yard: Yard,
    runner: Runner,
    credit: CreditStream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql = statements()["insert_eager_tasks"]
    fence = "AND sessions.epoch = i.session_epoch"
    assert fence in sql
    monkeypatch.setitem(statements(), "insert_eager_tasks", sql.replace(fence, ""))
    with pytest.raises(AssertionError):
        await test_a_session_that_was_superseded_gets_nothing(quiet, yard, runner, credit)


async def test_a_create_does_not_wait_for_a_locked_session(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner)
    async with quiet.pool.transaction() as tx:
        await tx.execute("SELECT FROM sessions FOR UPDATE")
        assert await is_queued(quiet, await create(yard))


async def test_a_session_does_not_end_while_a_create_leases_to_it(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    """A hello waits for the create and then decides about its lease: not listed, it is lost."""
    await credit.give(runner)
    with hold(failpoints.CREATE_BEFORE_COMMIT) as held:
        # An atomic batch with a request id is a transaction of several statements.
        items = [new_task(parent="", request_id="once")]
        request = task_service_pb2.BatchCreateTasksRequest(
            parent="tenants/default", requests=items, view=task_service_pb2.TASK_VIEW_FULL
        )
        creating = asyncio.ensure_future(yard.tenant.tasks.BatchCreateTasks(request))
        await held.reached()
        hello = asyncio.create_task(yard.hello(runner))
        await until_waiting(quiet)
        held.release()
        made = (await creating).results[0].created.task
        await hello
    assert made.status.phase == SCHEDULED
    assert (await yard.task(made.name)).status.phase == PENDING


# ---- expiry and withdrawal


async def test_credit_that_was_not_confirmed_in_time_is_void(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = quiet.taskdb.credit
    await credit.give(runner, 3, valid_for=3, runner_valid_for=10)
    real = book.now
    monkeypatch.setattr(book, "now", lambda: real() + 2.5)
    assert not await is_queued(quiet, await create(yard))
    monkeypatch.setattr(book, "now", lambda: real() + 3.5)
    assert await is_queued(quiet, await create(yard))
    await yard.claim(runner)
    await credit.send(valid_for=3)
    assert not await is_queued(quiet, await create(yard))
    # The scheduler is alive, but has not received a heartbeat of the runner for too long.
    monkeypatch.setattr(book, "now", lambda: real() + 10.5)
    await credit.send(valid_for=3)
    assert await is_queued(quiet, await create(yard))


async def test_withdrawn_credit_is_not_used(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 5)
    await credit.withdraw(runner)
    assert runner.id in credit.settled
    assert await is_queued(quiet, await create(yard))


async def test_withdrawal_is_settled_after_the_creates_under_way(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 5)
    with hold(failpoints.CREATE_BEFORE_COMMIT) as held:
        creating = asyncio.create_task(create(yard))
        await held.reached()
        await credit.withdraw(runner)
        assert runner.id not in credit.settled
        held.release()
        made = await creating
    await credit.receive(lambda: runner.id in credit.settled)
    assert [assignment.lease.task for assignment in credit.assignments] == [made.name]


async def test_leases_are_released_when_the_stream_ends_before_they_are_sent(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 5)
    with hold(failpoints.CREATE_BEFORE_COMMIT) as held:
        creating = asyncio.create_task(create(yard))
        await held.reached()
        await credit.end()
        held.release()
        made = await creating
    (assignment,) = await claim_what_is_queued(yard, runner)
    assert (assignment.lease.task, assignment.lease.generation) == (made.name, 2)


async def claim_what_is_queued(yard: Yard, runner: Runner) -> list[Any]:
    """What can be claimed, as soon as a scheduler gets to know of it."""
    request = lease_service_pb2.WatchQueueRequest(scheduler_id=yard.scheduler_id)
    watch = yard.scheduler.leases.WatchQueue(request)
    async with asyncio.timeout(15):
        while not any(lane.HasField("head_ready_time") for lane in (await watch.read()).lanes):
            pass
    watch.cancel()
    return list((await yard.claim(runner)).assignments)


# ---- gates


def later() -> Timestamp:
    made = Timestamp()
    made.FromDatetime(datetime.now(UTC) + timedelta(hours=1))
    return made


@pytest.mark.parametrize(
    "spec",
    [
        {"slot": "s"},
        {"not_before": later()},
        {"queue_timeout": Duration(seconds=60)},
        {"total_timeout": Duration(seconds=60)},
        {"placement": task_pb2.Placement(required=task_pb2.RunnerConstraint(runner_ids=["runner-1"]))},
    ],
    ids=lambda spec: next(iter(spec)),
)
async def test_tasks_with_a_gate_go_the_ordinary_way(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream, spec: dict[str, Any]
) -> None:
    await credit.give(runner, 5)
    made = await create(yard, **spec)
    assert made.status.phase == PENDING
    assert await quiet.rows("SELECT FROM leases") == []


async def test_a_counted_tenant_is_not_served_on_credit(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    """The row of counters decides, also if this replica has not learned of the quota."""
    await credit.give(runner, 5)
    await quiet.execute(
        "INSERT INTO tenant_counters (tenant_id, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, "
        "rate_burst, tokens) VALUES ('default', 1, 0, 0, 0, 1)"
    )
    assert await is_queued(quiet, await create(yard))
    assert await quiet.rows("SELECT pending, leased FROM tenant_counters") == [(1, 0)]


@pytest.mark.parametrize(
    "forbid",
    [
        "UPDATE tenants SET queue_paused = true",
        "UPDATE runners SET drain = ''",
        "UPDATE runners SET delete_time = now()",
        """UPDATE runners SET scope = '{"tenants": ["another"]}'""",
    ],
)
async def test_what_forbids_a_claim_forbids_a_lease_on_credit(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream, forbid: str
) -> None:
    await credit.give(runner, 5)
    await quiet.execute(forbid)
    assert await is_queued(quiet, await create(yard))


async def test_a_runner_serves_the_tenants_of_its_terms_only(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 5, tenants=["another"])
    assert await is_queued(quiet, await create(yard))


async def test_a_task_of_another_class_is_not_leased(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 5)
    assert await is_queued(quiet, await create(yard, task_type="another"))


async def test_a_failed_create_puts_its_place_back(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner)
    existing = await quiet.rows("SELECT task_id FROM tasks LIMIT 1")
    with pytest.raises(Exception, match="already"):
        await create(yard, task_id=existing[0][0])
    assert not await is_queued(quiet, await create(yard))


# ---- the stream


@pytest.mark.covers("KeepCredit", "FIELD_INVALID")
async def test_a_message_that_makes_no_sense_ends_the_stream_and_its_credit(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 5)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await credit.give(runner, -1)
    error = from_rpc_error(caught.value)
    assert isinstance(error, InvalidArgument)
    assert [violation.field for violation in error.violations] == ["runners[0].places"]
    assert await is_queued(quiet, await create(yard))


@pytest.mark.covers("KeepCredit", "SERVER_DRAINING")
async def test_a_server_that_drains_ends_the_stream_and_takes_no_new_one(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    await credit.give(runner, 5)
    quiet.taskdb.server.draining.set()
    async with asyncio.timeout(15):
        assert await credit._call.read() is grpc.aio.EOF
    assert await is_queued(quiet, await create(yard))
    quiet.taskdb.server._guard.streams.end_all()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await CreditStream(quiet, yard, credit.class_id).give(runner)
    assert isinstance(from_rpc_error(caught.value), ServerDraining)
