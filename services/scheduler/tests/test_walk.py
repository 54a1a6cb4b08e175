"""One task through the scheduler: queue watch, plan, claim, assignment, reports, acknowledgement."""

from __future__ import annotations

from services.scheduler.tests.conftest import Site


async def test_a_queued_task_reaches_a_connected_runner_and_its_outcome_taskdb(site: Site) -> None:
    runner = await site.runner()
    (name,) = site.taskdb.add_tasks()

    assignment = await runner.next_assignment()
    assert assignment.lease.task == name
    assert assignment.spec.execution.command.program == "/bin/true"
    await runner.complete(assignment)

    assert site.taskdb.phase(name) == "SUCCEEDED"
    assert runner.rejections == []


async def test_a_task_that_waits_is_claimed_when_a_runner_connects(site: Site) -> None:
    (name,) = site.taskdb.add_tasks()
    runner = await site.runner()
    assert (await runner.next_assignment()).lease.task == name


async def test_a_thousand_tasks_flow_through_one_runner(site: Site) -> None:
    runner = await site.runner(capacity=100)
    names = site.taskdb.add_tasks(1000)
    for _ in names:
        assignment = await runner.next_assignment()
        last = await runner.succeeded(assignment)
    await runner.acked(last)
    assert {site.taskdb.phase(name) for name in names} == {"SUCCEEDED"}
