"""Rules 3 to 5 and 13 of the link: assignments, heartbeats, commands. Each test carries its rule's number."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from services.scheduler.tests.conftest import Site, SiteMaker
from taskyard import errors
from taskyard.v1 import common_pb2, lease_pb2, lease_service_pb2, runner_pb2
from tests.harness.link_runner import registration


async def settle(site: Site) -> None:
    """Wait until the scheduler has stored a fresh heartbeat of every runner: by then it has dispatched."""
    for _ in range(3):
        await asyncio.sleep(0)
    count = len(site.taskdb.requests("RenewSessions"))
    await site.taskdb.called("RenewSessions", count + 2)


async def test_rule_03_assignments_never_exceed_free_capacity(site: Site) -> None:
    runner = await site.runner(capacity=3)
    site.taskdb.add_tasks(10)
    for _ in range(3):
        await runner.next_assignment()
    await settle(site)
    assert runner.waiting_assignments == 0
    assert len(runner.held) == 3


async def test_rule_03_prefetch_comes_on_top_of_capacity_and_does_not_grow(site: Site) -> None:
    runner = await site.runner(capacity=2, prefetch=3)
    site.taskdb.add_tasks(20)
    for _ in range(5):
        await runner.next_assignment()
    for _ in range(3):
        await runner.heartbeat_acked(await runner.heartbeat())
    await settle(site)
    assert runner.waiting_assignments == 0
    assert len(runner.held) == 5


async def test_rule_03_an_outcome_makes_room_before_the_next_heartbeat(site: Site) -> None:
    runner = await site.runner(capacity=1, heartbeats=False)
    site.taskdb.add_tasks(3)
    for _ in range(3):
        await runner.succeeded(await runner.next_assignment(timeout=1.0))


async def test_rule_03_a_heartbeat_that_crosses_an_assignment_does_not_free_its_place(site: Site) -> None:
    runner = await site.runner(capacity=2, heartbeats=False)
    site.taskdb.add_tasks(10)
    for _ in range(2):
        await runner.next_assignment()
    # As composed before the assignments arrived: two free, nothing held.
    runner.held.clear()
    runner._changed.clear()
    await runner.heartbeat_acked(await runner.heartbeat())
    site.taskdb.add_tasks()
    await runner.heartbeat_acked(await runner.heartbeat())
    assert runner.waiting_assignments == 0


@pytest.mark.parametrize("packs", [True, False], ids=["packed", "messages"])
async def test_rule_03_an_assignment_names_the_heartbeat_received_before_the_claim(
    site: Site, packs: bool
) -> None:
    """Also where an older taskdb returns messages."""
    site.taskdb.packs = packs
    runner = await site.runner(heartbeats=False)
    site.taskdb.add_tasks()
    first = await runner.next_assignment()
    assert first.heartbeat_id == 0, "only hello was received"
    beat = await runner.heartbeat()
    await runner.heartbeat_acked(beat)
    with site.taskdb.held_back("ClaimForRunners"):
        site.taskdb.add_tasks()
        await site.taskdb.called("ClaimForRunners", 2)
        later = await runner.heartbeat()
        await runner.heartbeat_acked(later)
    second = await runner.next_assignment()
    assert second.heartbeat_id == beat, "a heartbeat that came after the claim would stretch the lease"


async def test_rule_03_the_first_lease_is_short(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    assert runner.welcome is not None
    assert assignment.lease_ttl.ToTimedelta() < runner.welcome.lease_duration.ToTimedelta()


async def test_rule_03_work_released_for_lack_of_capacity_is_not_offered_again_before_a_heartbeat(
    site: Site,
) -> None:
    runner = await site.runner(capacity=2, heartbeats=False)
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    # Its heartbeats advance the time; it accepts nothing.
    await site.runner("beating", described=registration(task_types=["nothing"]))
    seq = await runner.released(assignment, lease_pb2.RELEASE_REASON_NO_CAPACITY)
    await runner.acked(seq)
    await settle(site)
    assert runner.waiting_assignments == 0
    await runner.heartbeat()
    assert (await runner.next_assignment()).lease.generation == 2


async def test_rule_03_work_refused_as_unsupported_goes_to_another_runner(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks(task_type="odd")
    site.taskdb.classes[("default", 1)].task_type = "odd"
    site.taskdb.add_class(task_type="odd")
    assignment = await runner.next_assignment()
    await runner.acked(await runner.released(assignment, lease_pb2.RELEASE_REASON_UNSUPPORTED))
    await settle(site)
    assert runner.waiting_assignments == 0
    other = await site.runner("runner-2")
    assert (await other.next_assignment()).lease.generation == 2


async def test_rule_03_an_assignment_the_agent_never_took_on_frees_its_place_when_its_lease_ends(
    site: Site,
) -> None:
    runner = await site.runner(capacity=1, heartbeats=False)
    site.taskdb.add_tasks(2)
    dropped = await runner.next_assignment()
    runner.held.clear()
    runner._changed.clear()
    second = None
    for _ in range(8):
        await runner.heartbeat()
        try:
            second = await runner.next_assignment(timeout=0.5)
            break
        except TimeoutError:
            continue
    assert second is not None and second.lease.task != dropped.lease.task


async def test_rule_03_claim_whose_stream_broke_is_released_at_once(site: Site) -> None:
    runner = await site.runner()
    with site.taskdb.held_back("ClaimForRunners"):
        site.taskdb.add_tasks()
        await site.taskdb.called("ClaimForRunners")
        await runner.vanish()
        await site.taskdb.called("CloseSession")
    report = (await site.taskdb.called("ReportRuns")).reports[0]
    assert report.report.WhichOneof("report") == "released"
    other = await site.runner("runner-2")
    assert (await other.next_assignment()).lease.generation == 2


async def test_rule_04_taken_on_assignments_are_listed_and_follow_the_session(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    site.taskdb.add_tasks(2)
    await runner.next_assignment()
    await runner.next_assignment()
    await runner.heartbeat_acked(await runner.heartbeat())
    listed = site.taskdb.requests("RenewSessions")[-1].sessions[0].listed
    assert {ref.task for ref in listed} == set(site.taskdb.tasks)
    await runner.heartbeat_acked(await runner.heartbeat())
    again = site.taskdb.requests("RenewSessions")[-1].sessions[0].listed
    assert list(again) == [], "a lease that follows its session is not listed again"


@pytest.mark.seed("S2.111")
async def test_rule_05_the_ack_comes_after_the_renewal_is_stored(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    with site.taskdb.held_back("RenewSessions"):
        beat = await runner.heartbeat()
        await site.taskdb.called("RenewSessions")
        with pytest.raises(TimeoutError):
            await runner.heartbeat_acked(beat, timeout=0.2)
    ack = await runner.heartbeat_acked(beat)
    assert ack.lease_ttl.ToTimedelta().total_seconds() == 3


async def test_rule_05_a_wrong_held_count_is_answered_with_a_request_for_everything(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    ack = await runner.heartbeat_acked(await runner.heartbeat(held_count=7))
    assert ack.full_requested
    full = await runner.heartbeat_acked(2)
    assert not full.full_requested


async def test_rule_05_a_heartbeat_id_that_does_not_grow_is_a_violation(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    await runner.heartbeat()
    runner._heartbeat_id = 0
    await runner.heartbeat()
    assert isinstance(await runner.ended(), errors.ProtocolViolation)


async def test_rule_05_heartbeats_of_many_runners_are_renewed_in_one_call(make_site: SiteMaker) -> None:
    site = await make_site(
        heartbeat_gather=timedelta(seconds=0.3),
        lease_duration=timedelta(seconds=5),
        heartbeat_interval=timedelta(seconds=1),
    )
    runners = [await site.runner(f"runner-{n}", heartbeats=False) for n in range(20)]
    await asyncio.gather(*(runner.heartbeat() for runner in runners))
    await asyncio.gather(*(runner.heartbeat_acked(1) for runner in runners))
    requests = site.taskdb.requests("RenewSessions")
    assert len(requests) == 1
    assert len(requests[0].sessions) == 20


async def test_rule_05_a_heartbeat_is_not_acked_while_taskdb_is_away_but_once_it_is_back(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.failures["RenewSessions"] = [errors.StorageUnavailable()] * 5
    beat = await runner.heartbeat()
    await runner.heartbeat_acked(beat)
    assert site.taskdb.failures["RenewSessions"] == []
    assert runner.connected


async def test_rule_05_changed_registration_changes_the_assignments_of_a_runner(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    site.taskdb.add_class(class_id=2, task_type="special")
    runner.registration = registration(4, task_types=["plain"])
    await runner.heartbeat_acked(await runner.heartbeat(registration=runner.registration))
    site.taskdb.add_tasks(class_id=2)
    await runner.heartbeat_acked(await runner.heartbeat())
    assert runner.waiting_assignments == 0
    runner.registration = registration(4, task_types=["spec*"])
    beat = await runner.heartbeat(registration=runner.registration)
    assert await runner.next_assignment()
    await runner.heartbeat_acked(beat)
    sent = site.taskdb.requests("RenewSessions")[-1].sessions[0]
    assert list(sent.registration.task_types) == ["spec*"]


@pytest.mark.seed("S2.113")
async def test_rule_05_progress_rides_on_heartbeats(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    held = runner.held[(assignment.lease.task, 1)]
    held.progress.CopyFrom(common_pb2.Progress(percent=40))
    await runner.heartbeat_acked(await runner.heartbeat())
    progress = site.taskdb.requests("RenewSessions")[-1].sessions[0].progress
    assert [item.progress.percent for item in progress] == [40]


@pytest.mark.seed("S2.117")
async def test_rule_13_a_cancel_reaches_the_runner_at_once_and_is_repeated_until_it_is_done(
    site: Site,
) -> None:
    runner = await site.runner(heartbeats=False)
    (name,) = site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    await runner.started(assignment)
    site.taskdb.cancel(name)
    command = (await runner.message("command")).command
    assert command.leases.verdicts[0].action == lease_pb2.LEASE_ACTION_CANCEL
    for _ in range(2):
        ack = await runner.heartbeat_acked(await runner.heartbeat())
        assert [v.lease.task for v in ack.verdicts] == [name]
    await runner.acked(await runner.report(assignment.lease, cancelled=lease_pb2.RunCancelled()))
    ack = await runner.heartbeat_acked(await runner.heartbeat())
    assert list(ack.verdicts) == []


async def test_rule_13_task_cancelled_before_its_claim_responds_is_not_sent_to_the_runner(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = await site.runner()
    claimed, proceed = asyncio.Event(), asyncio.Event()
    claim_for_runners = site.scheduler.taskdb.claim_for_runners

    async def respond_late(
        request: lease_service_pb2.ClaimForRunnersRequest,
    ) -> lease_service_pb2.ClaimForRunnersResponse:
        response = await claim_for_runners(request)
        claimed.set()
        await proceed.wait()
        return response

    monkeypatch.setattr(site.scheduler.taskdb, "claim_for_runners", respond_late)
    (name,) = site.taskdb.add_tasks()
    await claimed.wait()
    lease = site.taskdb.tasks[name].lease
    site.taskdb.cancel(name)
    await runner.message("command")
    proceed.set()
    request = await site.taskdb.called("ReportRuns")
    assert [(item.report.lease, item.report.WhichOneof("report")) for item in request.reports] == [
        (lease, "released")
    ]
    # The fake taskdb requeues it instead of cancelling it; the cancelled lease was not sent.
    assert (await runner.next_assignment()).lease.generation == 2


async def test_rule_13_a_cancel_is_repeated_after_a_reconnect(site: Site) -> None:
    runner = await site.runner()
    (name,) = site.taskdb.add_tasks()
    await runner.next_assignment()
    site.taskdb.cancel(name)
    await runner.vanish()
    welcome = await runner.connect()
    assert [v.lease.task for v in welcome.verdicts] == [name]


def drained(runner_id: str, *, drain: bool = True) -> runner_pb2.Runner:
    request = runner_pb2.DrainRequest(mode=runner_pb2.DRAIN_MODE_FINISH) if drain else None
    return runner_pb2.Runner(name=f"runners/{runner_id}", drain=request)


async def test_rule_13_a_drain_stops_new_work_and_an_undrain_brings_it_back(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.change_runner(drained("runner-1"))
    command = (await runner.message("command")).command
    assert command.drain.mode == runner_pb2.DRAIN_MODE_FINISH
    site.taskdb.add_tasks()
    await settle(site)
    assert runner.waiting_assignments == 0
    repeats = [m for m in runner.messages("command") if m.command.HasField("drain")]
    assert len(repeats) > 1, "the drain is repeated with heartbeat acks"

    site.taskdb.change_runner(drained("runner-1", drain=False))
    await runner.message("command", lambda m: m.command.HasField("undrain"))
    assert await runner.next_assignment()


async def test_rule_13_welcome_carries_a_drain_in_force(site: Site) -> None:
    site.taskdb.change_runner(drained("runner-1"))
    runner = await site.runner()
    assert runner.welcome is not None and runner.welcome.HasField("drain")
    site.taskdb.add_tasks()
    await settle(site)
    assert runner.waiting_assignments == 0


@pytest.mark.seed("S2.112")
async def test_rule_13_an_agent_that_drains_on_its_own_account_gets_no_work(site: Site) -> None:
    runner = await site.agent(heartbeats=False)
    runner.draining = True
    await runner.connect()
    site.taskdb.add_tasks()
    await runner.heartbeat_acked(await runner.heartbeat())
    assert runner.waiting_assignments == 0
    runner.draining = False
    await runner.heartbeat()
    assert await runner.next_assignment()


async def test_rule_13_lost_lease_is_repeated_until_the_agent_drops_it(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    (name,) = site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    await runner.heartbeat_acked(await runner.heartbeat())
    aborted = lease_pb2.LeaseVerdict(lease=assignment.lease, action=lease_pb2.LEASE_ACTION_ABORT)
    verdicts = lease_service_pb2.RunnerVerdicts(runner_id="runner-1", verdicts=[aborted])
    held = dict(runner.held)
    site.taskdb.publish(lease_service_pb2.WatchQueueResponse(verdicts=[verdicts]))
    await runner.message("command")
    # As if the agent had not received it.
    runner.held.update(held)
    runner._dropped.clear()
    for _ in range(2):
        ack = await runner.heartbeat_acked(await runner.heartbeat())
        assert [v.lease.task for v in ack.verdicts] == [name]
        runner.held.update(held)
        runner._dropped.clear()
    runner._drop(assignment.lease)
    await runner.heartbeat_acked(await runner.heartbeat())
    ack = await runner.heartbeat_acked(await runner.heartbeat())
    assert list(ack.verdicts) == []
