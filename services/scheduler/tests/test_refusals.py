"""Refusals of unsupported tasks: how long they last, and what clears them."""

from __future__ import annotations

import uuid

from services.scheduler.tests.conftest import Site
from taskyard.v1 import lease_pb2
from taskyard_scheduler.domain.refusals import REFUSAL_SECONDS, RefusalBook, RefusalKey, Refusals
from tests.harness.link_runner import LinkRunner

ODD = RefusalKey("t", "command", "odd")


def refused(key: RefusalKey = ODD, now: float = 0.0) -> Refusals:
    made = Refusals()
    made.add(key, now)
    return made


def test_a_refusal_counts_for_ten_minutes_from_the_last_one() -> None:
    refusals = refused()
    assert REFUSAL_SECONDS == 600.0
    assert refusals.seconds(ODD, 599.0) == 1.0
    refusals.add(ODD, 300.0)
    assert refusals.seconds(ODD, 600.0) == 300.0
    assert refusals.prune(899.0) and not refusals.prune(900.0)


def test_a_refusal_is_about_tasks_of_one_tenant_kind_type_and_function() -> None:
    refusals = refused(RefusalKey("t", "function", "mail", "send"))
    for other in (
        RefusalKey("u", "function", "mail", "send"),
        RefusalKey("t", "command", "mail", "send"),
        RefusalKey("t", "function", "post", "send"),
        RefusalKey("t", "function", "mail", "receive"),
    ):
        assert refusals.seconds(other, 1.0) == 0.0


def test_refusals_apply_to_a_reconnected_agent_and_not_to_a_new_one() -> None:
    book = RefusalBook()
    book.keep("r1", "agent", refused(), 10.0)
    assert book.recall("r1", "agent", 20.0).seconds(ODD, 20.0) == REFUSAL_SECONDS - 20.0
    book.keep("r1", "agent", refused(), 30.0)
    assert book.recall("r1", "another", 40.0).seconds(ODD, 40.0) == 0.0
    assert book.recall("r1", "agent", 50.0).seconds(ODD, 50.0) == 0.0, "its successor made it forgotten"


def test_refusals_of_runners_that_do_not_reconnect_are_dropped() -> None:
    book = RefusalBook()
    for n in range(5):
        book.keep(f"r{n}", "agent", refused(now=float(n)), float(n))
    book.keep("clean", "agent", Refusals(), 5.0)
    assert len(book) == 5
    book.recall("nobody", "agent", REFUSAL_SECONDS + 2.0)
    assert len(book) == 2


# ---- on the link


async def refuse(runner: LinkRunner) -> None:
    assignment = await runner.next_assignment()
    await runner.acked(await runner.released(assignment, lease_pb2.RELEASE_REASON_UNSUPPORTED))


async def test_rule_03_a_reconnect_does_not_make_a_refusal_forgotten_and_another_agent_does(
    site: Site,
) -> None:
    runner = await site.runner()
    (refused_task,) = site.taskdb.add_tasks()
    await refuse(runner)
    await runner.send_goodbye(keep_leases=True)
    await runner.ended()
    await runner.connect()
    # The runner gets the other task; the plan that assigned it considered the refused one as well.
    site.taskdb.add_class(class_id=2, task_type="plain")
    (plain,) = site.taskdb.add_tasks(class_id=2, task_type="plain")
    assert (await runner.next_assignment()).lease.task == plain
    await runner.heartbeat_acked(await runner.heartbeat())
    assert runner.waiting_assignments == 0
    await runner.send_goodbye(keep_leases=True)
    await runner.ended()
    runner.instance_id = str(uuid.uuid4())
    await runner.connect()
    assert (await runner.next_assignment()).lease.task == refused_task


async def test_rule_03_refusal_applies_to_a_claim_in_flight(site: Site) -> None:
    runner = await site.runner(capacity=2)
    site.taskdb.add_tasks()
    first = await runner.next_assignment()
    with site.taskdb.held_back("ClaimForRunners"):
        (second,) = site.taskdb.add_tasks()
        await site.taskdb.called("ClaimForRunners", 2)
        await runner.acked(await runner.released(first, lease_pb2.RELEASE_REASON_UNSUPPORTED))
    reports = (await site.taskdb.called("ReportRuns", 2)).reports
    assert [(r.report.lease.task, r.report.WhichOneof("report")) for r in reports] == [(second, "released")]
    await runner.heartbeat_acked(await runner.heartbeat())
    assert runner.waiting_assignments == 0
    other = await site.runner("runner-2")
    assert {(await other.next_assignment()).lease.task for _ in range(2)} == {first.lease.task, second}
