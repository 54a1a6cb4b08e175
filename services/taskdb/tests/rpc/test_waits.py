"""A run that ends to wait for children: blocked until they have ended, without an attempt or a retry."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from services.taskdb.tests.child_calls import create as create_children
from services.taskdb.tests.child_calls import spawned, waiting
from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.rpc.limit_calls import create_limit, uses
from services.taskdb.tests.rpc.test_children import claimed
from services.taskdb.tests.rpc.test_dependencies import no_job
from services.taskdb.tests.yard import Runner, Yard, duration, failed, started, succeeded
from taskyard.errors import FieldInvalid, LeaseNotHeld, NotFound, StaleGeneration
from taskyard.status import translated
from taskyard.v1 import lease_pb2, lease_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.storage.dependency import backlog
from taskyard_taskdb.storage.doctor.checks import CHECKS, run_check
from taskyard_taskdb.storage.doctor.repairs import RepairContext

PENDING, PAUSED = task_pb2.TASK_PHASE_PENDING, task_pb2.TASK_PHASE_PAUSED
BLOCKED = task_pb2.PENDING_REASON_BLOCKED
QUEUED = task_pb2.PENDING_REASON_QUEUED
Assignment = lease_pb2.Assignment


async def outcomes(
    yard: Yard, runner: Runner, parent: Assignment, names: Sequence[str]
) -> list[lease_pb2.ChildOutcome]:
    request = lease_service_pb2.ReadChildOutcomesRequest(runner_id=runner.id, lease=parent.lease, tasks=names)
    with translated():
        return list((await yard.scheduler.leases.ReadChildOutcomes(request)).outcomes)


async def wait_for_two(yard: Yard) -> tuple[Runner, Assignment, list[str]]:
    """A parent that waits for two children."""
    runner, parent = await claimed(yard)
    names = await create_children(yard, runner.id, parent.lease, spawned("a"), spawned("b"))
    results = await yard.report(runner, started(parent), waiting(parent, names))
    assert [result.error.code for result in results] == [0, 0]
    return runner, parent, names


async def finish(yard: Yard, runner: Runner, names: Sequence[str]) -> None:
    """Claim everything, and end these tasks well."""
    for found in (await yard.claim(runner)).assignments:
        assert found.lease.task in names
        await yard.report(runner, started(found), succeeded(found))


async def test_a_waiting_task_is_claimed_again_when_its_children_have_ended(yard: Yard) -> None:
    runner, parent, names = await wait_for_two(yard)
    task = await yard.task(parent.lease.task)
    assert (task.status.phase, task.status.pending_reason) == (PENDING, BLOCKED)
    assert (task.status.attempt, task.status.retry_count, task.status.runner_loss_count) == (0, 0, 0)
    first, second = (await yard.claim(runner)).assignments
    assert {first.lease.task, second.lease.task} == set(names)
    await yard.report(runner, started(first), succeeded(first))
    assert not (await yard.claim(runner)).assignments
    await yard.report(runner, started(second), failed(second, permanent=True))
    (again,) = (await yard.claim(runner)).assignments
    assert (again.lease.task, again.lease.generation, again.attempt) == (parent.lease.task, 2, 1)
    found = await outcomes(yard, runner, again, names)
    phases = {one.task: one.phase for one in found}
    assert phases[first.lease.task] == task_pb2.TASK_PHASE_SUCCEEDED
    assert phases[second.lease.task] == task_pb2.TASK_PHASE_FAILED
    assert {one.error.code for one in found} == {"", "EXIT_NONZERO"}
    await yard.report(runner, started(again), succeeded(again))
    ended = await yard.task(parent.lease.task)
    assert (ended.status.phase, ended.status.attempt) == (task_pb2.TASK_PHASE_SUCCEEDED, 1)


async def test_children_that_have_ended_before_the_wait_do_not_block(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    names = await create_children(yard, runner.id, parent.lease, spawned("a"))
    await yard.report(runner, started(parent))
    await finish(yard, runner, names)
    await yard.report(runner, waiting(parent, names))
    task = await yard.task(parent.lease.task)
    assert (task.status.phase, task.status.pending_reason) == (PENDING, QUEUED)


async def test_a_wait_and_the_end_of_the_child_in_one_batch_do_not_miss_each_other(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    names = await create_children(yard, runner.id, parent.lease, spawned("a"))
    (only,) = (await yard.claim(runner)).assignments
    # A failure is decided in the same transaction as the wait, which comes first in the call.
    await yard.report(
        runner,
        started(parent),
        waiting(parent, names),
        started(only),
        failed(only, permanent=True),
    )
    task = await yard.task(parent.lease.task)
    assert (task.status.phase, task.status.pending_reason) == (PENDING, QUEUED)


async def test_only_live_children_of_the_task_are_waited_for(yard: Yard) -> None:
    (other,) = await yard.create()
    runner, parent = await claimed(yard)
    unknown = "tenants/default/tasks/unknown"
    foreign = "tenants/elsewhere/tasks/x"
    await yard.report(runner, started(parent), waiting(parent, [other, unknown, foreign]))
    task = await yard.task(parent.lease.task)
    assert (task.status.phase, task.status.pending_reason) == (PENDING, QUEUED)


async def test_a_repeated_wait_is_a_duplicate(yard: Yard) -> None:
    runner, parent, names = await wait_for_two(yard)
    (result,) = await yard.report(runner, waiting(parent, names))
    assert result.duplicate and not result.error.code


async def test_a_stale_holder_cannot_make_the_task_wait(yard: Yard) -> None:
    runner, parent, names = await wait_for_two(yard)
    await finish(yard, runner, names)
    (again,) = (await yard.claim(runner)).assignments
    forged = waiting(again, names)
    forged.lease.lease_id += 1
    (result,) = await yard.report(runner, forged)
    assert result.error.code
    assert (await yard.task(parent.lease.task)).status.phase == task_pb2.TASK_PHASE_SCHEDULED


async def test_a_second_wait_names_other_children(yard: Yard) -> None:
    runner, parent, names = await wait_for_two(yard)
    await finish(yard, runner, names)
    (again,) = (await yard.claim(runner)).assignments
    more = await create_children(yard, runner.id, again.lease, spawned("a"), spawned("c"))
    assert more[0] == names[0]
    await yard.report(runner, started(again), waiting(again, [*names, *more]))
    assert (await yard.task(parent.lease.task)).status.pending_reason == BLOCKED
    await finish(yard, runner, more[1:])
    assert (await yard.task(parent.lease.task)).status.pending_reason == QUEUED


async def test_a_cancelled_parent_leaves_its_children_and_ignores_their_ends(yard: Yard) -> None:
    runner, parent, names = await wait_for_two(yard)
    await yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=parent.lease.task))
    assert (await yard.task(parent.lease.task)).status.phase == task_pb2.TASK_PHASE_CANCELLED
    assert (await yard.task(names[0])).status.phase == PENDING
    await finish(yard, runner, names)
    assert (await yard.task(parent.lease.task)).status.phase == task_pb2.TASK_PHASE_CANCELLED


async def test_a_parent_cancelled_in_its_wait_waits_anew_after_a_retry(yard: Yard) -> None:
    runner, parent, names = await wait_for_two(yard)
    await yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=parent.lease.task))
    await yard.tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=parent.lease.task))
    claimed_again = (await yard.claim(runner)).assignments
    again = next(one for one in claimed_again if one.lease.task == parent.lease.task)
    children = [one for one in claimed_again if one.lease.task in names]
    assert len(children) == 2
    # Only one of them this time: the end of the other, which the first wait named, does not release it.
    await yard.report(runner, started(again), waiting(again, [children[0].lease.task]))
    await yard.report(runner, started(children[1]), succeeded(children[1]))
    assert (await yard.task(parent.lease.task)).status.pending_reason == BLOCKED
    await yard.report(runner, started(children[0]), succeeded(children[0]))
    assert (await yard.task(parent.lease.task)).status.pending_reason == QUEUED


async def test_a_paused_parent_stays_paused_while_its_children_end(yard: Yard) -> None:
    runner, parent, names = await wait_for_two(yard)
    await yard.tenant.tasks.PauseTask(task_service_pb2.PauseTaskRequest(name=parent.lease.task))
    await finish(yard, runner, names)
    assert (await yard.task(parent.lease.task)).status.phase == PAUSED
    await yard.tenant.tasks.ResumeTask(task_service_pb2.ResumeTaskRequest(name=parent.lease.task))
    task = await yard.task(parent.lease.task)
    assert (task.status.phase, task.status.pending_reason) == (PENDING, QUEUED)


async def test_a_spawned_child_is_found_by_its_key_in_every_run(yard: Yard, taskdb: RunningTaskDb) -> None:
    runner, parent, names = await wait_for_two(yard)
    await finish(yard, runner, names)
    (again,) = (await yard.claim(runner)).assignments
    await taskdb.execute("DELETE FROM idempotency_keys")
    assert await create_children(yard, runner.id, again.lease, spawned("b"), spawned("a")) == names[::-1]
    assert names[0].startswith(f"{parent.lease.task}.a.")


async def test_repetitions_of_a_spawn_that_race_create_each_child_once(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    runner, parent = await claimed(yard)
    children = [spawned(key) for key in "abc"]
    answers = await asyncio.gather(
        *(create_children(yard, runner.id, parent.lease, *children) for _ in range(8))
    )
    assert all(names == answers[0] for names in answers), answers
    assert await taskdb.rows("SELECT count(*) FROM tasks WHERE parent_task_id IS NOT NULL") == [(3,)]


async def test_a_key_that_named_another_child_is_refused(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    payload = task_pb2.TaskSpec()
    payload.payload.raw = b"1"
    await create_children(yard, runner.id, parent.lease, spawned("a", payload=payload.payload))
    with pytest.raises(FieldInvalid) as refused:
        await create_children(yard, runner.id, parent.lease, spawned("b"), spawned("a"))
    assert "children[1].task.spec" in str(refused.value) and "same order" in str(refused.value)


async def test_long_keys_and_parents_have_ids_that_fit(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    keys = ["x" * 256, "a key with spaces"]
    names = await create_children(yard, runner.id, parent.lease, *(spawned(key) for key in keys))
    assert len(set(names)) == 2
    assert await create_children(yard, runner.id, parent.lease, *(spawned(key) for key in keys)) == names


async def test_a_wait_that_would_never_end_fails_the_task(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    behind = [task_pb2.Dependency(task=parent.lease.task, when=task_pb2.DEPENDENCY_CONDITION_ENDED)]
    (first,) = await create_children(yard, runner.id, parent.lease, spawned("a", after=behind))
    chained = [task_pb2.Dependency(task=first)]
    (second,) = await create_children(yard, runner.id, parent.lease, spawned("b", after=chained))
    await yard.report(runner, started(parent), waiting(parent, [second]))
    task = await yard.task(parent.lease.task)
    assert (task.status.phase, task.status.error.code) == (task_pb2.TASK_PHASE_FAILED, "WAIT_CYCLE")
    assert first in task.status.error.message


async def test_a_child_that_waits_for_something_else_is_no_circle(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    (first,) = await create_children(yard, runner.id, parent.lease, spawned("a"))
    (second,) = await create_children(
        yard, runner.id, parent.lease, spawned("b", after=[task_pb2.Dependency(task=first)])
    )
    await yard.report(runner, started(parent), waiting(parent, [second]))
    assert (await yard.task(parent.lease.task)).status.pending_reason == BLOCKED


async def test_results_are_read_once_all_have_ended_and_in_pages(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    names = await create_children(yard, runner.id, parent.lease, *(spawned(f"k{n}") for n in range(5)))
    found = (await yard.claim(runner)).assignments
    large = task_pb2.TaskResult()
    large.output.raw = b"x" * (1000 * 1000)
    for one in found[:-1]:
        await yard.report(runner, started(one), succeeded(one, result=large))
    early = await outcomes(yard, runner, parent, names)
    assert len(early) == 5 and not any(one.HasField("result") for one in early)
    assert [one.task for one in early if not one.phase] == [found[-1].lease.task]
    await yard.report(runner, started(found[-1]), succeeded(found[-1], result=large))
    page = await outcomes(yard, runner, parent, names)
    assert [one.task for one in page] == names[:3]
    rest = await outcomes(yard, runner, parent, names[3:])
    assert [len(one.result.output.raw) for one in rest] == [1000 * 1000] * 2


@pytest.mark.covers("ReadChildOutcomes", "NOT_FOUND")
async def test_only_children_are_read(yard: Yard) -> None:
    (other,) = await yard.create()
    runner, parent = await claimed(yard)
    names = await create_children(yard, runner.id, parent.lease, spawned("a"))
    for wrong in (other, "tenants/elsewhere/tasks/x", "tenants/default/tasks/unknown"):
        for asked in ([wrong], [*names, wrong], [wrong, *names]):
            with pytest.raises(NotFound) as refused:
                await outcomes(yard, runner, parent, asked)
            assert wrong in str(refused.value)


@pytest.mark.covers("ReadChildOutcomes", "LEASE_NOT_HELD")
@pytest.mark.covers("ReadChildOutcomes", "STALE_GENERATION")
@pytest.mark.covers("ReadChildOutcomes", "FIELD_INVALID")
async def test_only_the_holder_reads_children(yard: Yard) -> None:
    runner, parent, names = await wait_for_two(yard)
    with pytest.raises(LeaseNotHeld):
        await outcomes(yard, runner, parent, names)
    await finish(yard, runner, names)
    (again,) = (await yard.claim(runner)).assignments
    with pytest.raises(StaleGeneration):
        await outcomes(yard, runner, parent, names)
    with pytest.raises(FieldInvalid):
        await outcomes(yard, runner, again, [])


async def test_doctor_finds_a_parent_whose_children_have_all_ended(yard: Yard, taskdb: RunningTaskDb) -> None:
    runner, parent, names = await wait_for_two(yard)
    check = next(one for one in CHECKS if one.name == "dependencies")
    assert (await run_check(taskdb.pool, check)).count == 0
    # Outcomes that released nobody.
    await taskdb.execute("UPDATE tasks SET has_dependents = NULL WHERE parent_task_id IS NOT NULL")
    await taskdb.execute("UPDATE leases SET plain = false")
    await finish(yard, runner, names)
    assert (await yard.task(parent.lease.task)).status.pending_reason == BLOCKED
    context = RepairContext(taskdb.pool, lambda _: None, SYSTEM, no_job)
    finding = await run_check(taskdb.pool, check, context)
    assert (finding.count, finding.repaired, finding.remaining) == (1, 1, 0)
    while (await taskdb.pool.run(backlog.advance)).count:
        pass
    assert (await yard.task(parent.lease.task)).status.pending_reason == QUEUED


async def test_a_wait_is_in_the_audit_trail(yard: Yard, taskdb: RunningTaskDb) -> None:
    _, _, names = await wait_for_two(yard)
    ((details, phase),) = await taskdb.rows("SELECT details, phase FROM changes WHERE event = 27")
    assert (details["live_children"], details["first"] in names, phase) == (2, True, PENDING)


async def test_total_timeout_counts_while_a_task_waits(yard: Yard, taskdb: RunningTaskDb) -> None:
    await wait_for_two(yard)
    timers = await taskdb.rows("SELECT count(*) FROM timers WHERE kind = 3")
    assert timers == [(0,)]
    (other,) = await yard.create(total_timeout=duration(3600))
    found = next(
        one for one in (await yard.claim(await another(yard))).assignments if one.lease.task == other
    )
    (child_name,) = await create_children(yard, "runner-2", found.lease, spawned("a"))
    await yard.report("runner-2", started(found), waiting(found, [child_name]))
    assert await taskdb.rows("SELECT task_id FROM timers WHERE kind = 3") == [(other.rpartition("/")[2],)]


@pytest.mark.parametrize("shared", ["slot", "limit"])
async def test_slot_and_units_are_given_back_for_the_wait(yard: Yard, shared: str) -> None:
    """The child needs the same ones."""
    if shared == "limit":
        await create_limit(yard.tenant, "api", max_running=1)
    spec: dict[str, Any] = {"slot": "s"} if shared == "slot" else {"limits": uses("api")}
    (parent_name,) = await yard.create(**spec)
    runner, _ = await yard.hello()
    (parent,) = (await yard.claim(runner)).assignments
    (name,) = await create_children(yard, runner.id, parent.lease, spawned("a", **spec))
    await yard.report(runner, started(parent))
    assert not (await yard.claim(runner)).assignments
    await yard.report(runner, waiting(parent, [name]))
    (child,) = (await yard.claim(runner)).assignments
    assert child.lease.task == name
    await yard.report(runner, started(child), succeeded(child))
    (again,) = (await yard.claim(runner)).assignments
    assert (again.lease.task, again.attempt) == (parent_name, 1)


async def another(yard: Yard) -> Runner:
    return (await yard.hello("runner-2"))[0]


async def test_a_wait_names_tasks_and_others_do_not(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    drained = waiting(parent, ["tenants/default/tasks/x"])
    drained.released.reason = lease_pb2.RELEASE_REASON_DRAINED
    for report in (waiting(parent, []), waiting(parent, ["x"]), drained):
        with pytest.raises(FieldInvalid) as refused, translated():
            await yard.report(runner, report)
        assert "reports[0].report.released.wait_for" in str(refused.value)


async def test_a_wait_for_a_prerequisite_that_lives_again_is_stored(yard: Yard) -> None:
    """A task that names its own child in spec.after, which has ended before and was retried."""
    parent = "tenants/default/tasks/parent"
    command = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    request = task_service_pb2.CreateTaskRequest(parent="tenants/default", task_id="child")
    request.task.spec.execution.CopyFrom(command)
    request.task.metadata.parent_task = parent
    name = (await yard.tenant.tasks.CreateTask(request)).task.name
    request = task_service_pb2.CreateTaskRequest(parent="tenants/default", task_id="parent")
    request.task.spec.execution.CopyFrom(command)
    request.task.spec.after.add(task=name, when=task_pb2.DEPENDENCY_CONDITION_ENDED)
    await yard.tenant.tasks.CreateTask(request)
    runner, _ = await yard.hello()
    (found,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(found), failed(found, permanent=True))
    (held,) = (await yard.claim(runner)).assignments
    assert held.lease.task == parent
    await yard.tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=name))
    results = await yard.report(runner, started(held), waiting(held, [name]))
    assert [result.error.message for result in results] == ["", ""]
    (child,) = (await yard.claim(runner)).assignments
    assert child.lease.task == name
    await yard.report(runner, started(child), succeeded(child))
    (again,) = (await yard.claim(runner)).assignments
    assert again.lease.task == parent


async def test_results_are_counted_as_the_parent_gets_them(yard: Yard) -> None:
    """Characters that JSON escapes take six bytes of a document and one of a structure."""
    runner, parent = await claimed(yard)
    keys = [f"k{n:02}" for n in range(14)]
    names = await create_children(yard, runner.id, parent.lease, *(spawned(key) for key in keys))
    await yard.report(runner, started(parent))
    result = task_pb2.TaskResult()
    result.output.json.update({"text": "\1" * (60 * 1024)})
    for found in (await yard.claim(runner)).assignments:
        await yard.report(runner, started(found), succeeded(found, result=result))
    read: list[str] = []
    while len(read) < len(names):
        page = await outcomes(yard, runner, parent, names[len(read) :])
        assert page and all(one.result.output.raw for one in page)
        read += [one.task for one in page]
    assert read == names
