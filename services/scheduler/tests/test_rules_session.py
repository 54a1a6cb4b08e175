"""Rules 1, 2, 6, 14 and 15 of the link: how a session begins and ends. Tests carry the rule's number."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import grpc.aio
import pytest

from services.scheduler.tests.conftest import Site, SiteMaker
from taskyard import errors
from taskyard.v1 import api_key_pb2, lease_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1.lease_service_pb2 import WatchQueueResponse
from tests.harness.link_runner import LinkRunner


async def test_rule_01_nothing_is_sent_before_hello_and_hello_is_due_in_time(site: Site) -> None:
    runner = await site.agent()
    runner.open()
    site.taskdb.add_tasks()
    ended = await runner.ended()
    assert isinstance(ended, errors.ProtocolViolation)
    assert "hello" in str(ended)
    assert site.taskdb.requests("ClaimForRunners") == []


async def test_rule_01_the_first_message_must_be_hello(site: Site) -> None:
    runner = await site.agent()
    runner.open()
    await runner.send(heartbeat=link.Heartbeat(heartbeat_id=1))
    assert isinstance(await runner.ended(), errors.ProtocolViolation)


async def test_rule_01_a_second_hello_ends_the_stream(site: Site) -> None:
    runner = await site.runner()
    await runner.send(hello=runner.hello())
    assert isinstance(await runner.ended(), errors.ProtocolViolation)


async def test_rule_01_hello_lists_every_held_lease_including_ended_unacknowledged_runs(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks(2)
    first, second = await runner.next_assignment(), await runner.next_assignment()
    with site.taskdb.held_back("ReportRuns"):
        await runner.succeeded(first)
        await runner.vanish()
        await runner.connect()
    opened = site.taskdb.requests("OpenSession")[-1]
    assert {ref.task for ref in opened.held} == {first.lease.task, second.lease.task}
    await runner.acked(1)


async def test_rule_01_a_hello_that_breaks_a_field_rule_is_refused_with_the_field_named(site: Site) -> None:
    runner = await site.agent()
    hello = runner.hello()
    hello.instance_id = "not-a-uuid"
    with pytest.raises(errors.FieldInvalid, match="instance_id"):
        await runner.connect(hello)


async def test_rule_02_a_new_session_of_the_same_agent_supersedes_the_old_stream(site: Site) -> None:
    old = await site.runner()
    new = await site.agent()
    new.instance_id = old.instance_id
    welcome = await new.connect()
    assert old.welcome is not None and welcome.session_epoch > old.welcome.session_epoch
    assert isinstance(await old.ended(), errors.SessionSuperseded)
    site.taskdb.add_tasks()
    assert await new.next_assignment()


async def test_rule_02_another_live_instance_is_refused_and_the_first_continues(site: Site) -> None:
    first = await site.runner()
    second = await site.agent()
    with pytest.raises(errors.RunnerIdInUse):
        await second.connect()
    site.taskdb.add_tasks()
    assert await first.next_assignment()


async def test_rule_02_takeover_supersedes_a_live_instance(site: Site) -> None:
    first = await site.runner()
    second = await site.agent()
    await second.connect(takeover=True)
    assert isinstance(await first.ended(), errors.SessionSuperseded)
    site.taskdb.add_tasks()
    assert await second.next_assignment()


async def test_rule_02_a_session_superseded_at_another_scheduler_ends_with_its_next_renewal(
    make_site: SiteMaker,
) -> None:
    here, there = await make_site(), await make_site()
    old = await here.runner(heartbeats=False)
    new = LinkRunner(there.address, there.key)
    new.instance_id = old.instance_id
    async with new:
        await new.connect()
        await old.heartbeat()
        assert isinstance(await old.ended(), errors.SessionSuperseded)
        assert new.connected


async def test_rule_02_a_superseded_session_gets_no_work(make_site: SiteMaker) -> None:
    here, there = await make_site(), await make_site()
    old = await here.runner(heartbeats=False)
    new = LinkRunner(there.address, there.key)
    new.instance_id = old.instance_id
    async with new:
        await new.connect()
        here.taskdb.add_tasks(3)
        assert isinstance(await old.ended(), errors.SessionSuperseded)
        names = {(await new.next_assignment()).lease.task for _ in range(3)}
        assert len(names) == 3
        assert old.waiting_assignments == 0


async def test_rule_02_welcome_has_a_verdict_for_each_lost_lease_and_none_for_the_others(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks(2)
    kept, lost = await runner.next_assignment(), await runner.next_assignment()
    await runner.vanish()
    site.taskdb.tasks[lost.lease.task].generation += 1
    welcome = await runner.connect()
    assert [v.lease.task for v in welcome.verdicts] == [lost.lease.task]
    assert welcome.verdicts[0].action == lease_pb2.LEASE_ACTION_ABORT
    assert (kept.lease.task, 1) in runner.held


async def test_rule_06_without_heartbeats_the_stream_ends_and_taskdb_is_notified(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    ended = await runner.ended()
    assert isinstance(ended, errors.HeartbeatTimeout)
    closed = await site.taskdb.called("CloseSession")
    assert closed.disconnected and not closed.release
    assert site.scheduler.fleet.sessions == {}


async def test_rule_06_a_frozen_runner_that_reads_nothing_is_ended_all_the_same(site: Site) -> None:
    runner = await site.runner(capacity=2000)
    other = await site.runner("runner-2")
    runner.freeze()
    # More than the transport buffers, so that the writer of the frozen stream is stuck in its write.
    site.taskdb.add_tasks(40, pinned="runner-1", payload={"raw": b"x" * 1_000_000})
    await site.taskdb.called("CloseSession")
    assert "runner-1" not in site.scheduler.fleet.sessions
    site.taskdb.add_tasks(1)
    assert await other.next_assignment()


async def test_rule_06_runner_without_a_recent_heartbeat_gets_no_work(make_site: SiteMaker) -> None:
    site = await make_site(heartbeat_interval=timedelta(seconds=1.2), lease_duration=timedelta(seconds=5))
    runner = await site.runner(heartbeats=False)
    session = site.scheduler.fleet.sessions["runner-1"]
    session.heartbeat_time -= 1.7
    site.taskdb.add_tasks(publish=False)
    assert site.scheduler.fleet.offers(site.scheduler.clock()) == []
    await runner.heartbeat()
    await runner.heartbeat_acked(1)
    assert site.scheduler.fleet.offers(site.scheduler.clock()) != []


async def test_rule_14_goodbye_of_the_agent_ends_the_session_and_releases_its_leases(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    await runner.started(assignment)
    await runner.send_goodbye()
    assert await runner.ended() is None
    closed = await site.taskdb.called("CloseSession")
    assert closed.release and not closed.disconnected
    assert site.taskdb.phase(assignment.lease.task) == "RUNNING", "the report before the goodbye was applied"


async def test_rule_14_goodbye_with_keep_leases_lets_them_live_on(site: Site) -> None:
    runner = await site.runner()
    await runner.send_goodbye(keep_leases=True)
    assert await runner.ended() is None
    closed = await site.taskdb.called("CloseSession")
    assert not closed.release and not closed.disconnected


async def test_rule_14_reports_before_an_agents_goodbye_are_acknowledged_before_the_end(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    with site.taskdb.held_back("ReportRuns"):
        seq = await runner.succeeded(assignment)
        await runner.send_goodbye()
        await site.taskdb.called("ReportRuns")
        assert site.taskdb.requests("CloseSession") == []
    assert await runner.ended() is None
    await runner.acked(seq)
    order = [name for name, _ in site.taskdb.calls if name in ("ReportRuns", "CloseSession")]
    assert order == ["ReportRuns", "CloseSession"]


async def test_rule_14_goodbye_of_the_server_acks_what_it_received_and_affects_no_task(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks(2)
    first, second = await runner.next_assignment(), await runner.next_assignment()
    with site.taskdb.held_back("ReportRuns"):
        seq = await runner.succeeded(first)
        await site.taskdb.called("ReportRuns")
        draining = asyncio.create_task(site.server.drain())
        goodbye = (await runner.message("goodbye")).goodbye
        assert goodbye.reason == link.SERVER_GOODBYE_REASON_SHUTDOWN
        later = await runner.started(second)
        await runner.half_close()
    assert await runner.ended() is None
    await draining
    await runner.acked(max(seq, later))
    assert site.taskdb.phase(first.lease.task) == "SUCCEEDED"
    assert site.taskdb.phase(second.lease.task) == "RUNNING"
    assert site.taskdb.requests("CloseSession") == [], "the session goes on at another scheduler"


async def test_rule_14_after_the_servers_goodbye_nothing_new_is_sent(site: Site) -> None:
    runner = await site.runner()
    drain = asyncio.create_task(site.server.drain())
    await runner.message("goodbye")
    site.taskdb.add_tasks(2)
    await runner.half_close()
    assert await runner.ended() is None
    await drain
    assert runner.waiting_assignments == 0
    assert [site.taskdb.phase(name) for name in site.taskdb.tasks] == ["PENDING", "PENDING"]


async def test_rule_14_old_session_is_redirected_and_may_reconnect(make_site: SiteMaker) -> None:
    site = await make_site(max_session_age=timedelta(seconds=1))
    runner = await site.runner()
    assert runner.welcome is not None and runner.welcome.max_session_age.seconds == 1
    goodbye = (await runner.message("goodbye")).goodbye
    assert goodbye.reason == link.SERVER_GOODBYE_REASON_SESSION_AGE
    await runner.half_close()
    assert await runner.ended() is None
    await runner.connect()
    site.taskdb.add_tasks()
    assert await runner.next_assignment()


async def test_rule_14_a_failover_of_the_database_opens_every_session_again(site: Site) -> None:
    runner = await site.runner()
    for log_epoch in (7, 0, 7):
        site.taskdb.publish(WatchQueueResponse(log_epoch=log_epoch))
    # Answered behind those: the same database ends no session.
    site.taskdb.add_tasks()
    assert await runner.next_assignment()
    site.taskdb.publish(WatchQueueResponse(log_epoch=8))
    goodbye = (await runner.message("goodbye")).goodbye
    assert goodbye.reason == link.SERVER_GOODBYE_REASON_DATABASE_REPLACED
    await runner.half_close()
    assert await runner.ended() is None
    await runner.connect()
    site.taskdb.publish(WatchQueueResponse(log_epoch=8))
    site.taskdb.add_tasks()
    assert await runner.next_assignment()


async def test_rule_14_an_agent_that_ignores_the_servers_goodbye_is_cut_off(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    await site.server.drain()
    assert await runner.ended() is None


async def test_rule_15_unknown_members_are_ignored(site: Site) -> None:
    runner = await site.runner()
    unknown = link.ConnectRequest.FromString(b"\xfa\x01\x03abc")
    await runner._call.write(unknown)
    site.taskdb.add_tasks()
    assert await runner.next_assignment()


async def test_rule_15_the_session_speaks_the_lower_of_both_versions(site: Site) -> None:
    runner = await site.agent()
    welcome = await runner.connect(runner.hello(protocol_version=7))
    assert welcome.protocol_version == 1


async def test_rule_15_without_a_common_version_the_agent_is_refused(site: Site) -> None:
    runner = await site.agent()
    with pytest.raises(errors.ProtocolVersionUnsupported):
        await runner.connect(runner.hello(protocol_version=0))


async def test_key_for_another_runner_id_is_refused_without_a_call_to_taskdb(site: Site) -> None:
    key = site.taskdb.add_key(api_key_pb2.PRINCIPAL_KIND_RUNNER, runner_id="edge-*")
    runner = await site.agent("runner-1", key=key)
    with pytest.raises(errors.PermissionDenied, match="edge-"):
        await runner.connect()
    assert site.taskdb.requests("OpenSession") == []
    allowed = await site.agent("edge-7", key=key)
    await allowed.connect()


async def test_other_kinds_of_keys_may_not_connect(site: Site) -> None:
    key = site.taskdb.add_key(api_key_pb2.PRINCIPAL_KIND_TENANT)
    runner = await site.agent(key=key)
    with pytest.raises(errors.PermissionDenied):
        await runner.connect()
    stranger = await site.agent(key="ty_unknown1_" + "y" * 32)
    with pytest.raises(errors.Unauthenticated):
        await stranger.connect()


async def test_a_deleted_runner_is_cut_off(site: Site) -> None:
    runner = await site.runner()
    deleted = site.taskdb.runners["runner-1"]
    deleted.delete_time.GetCurrentTime()
    site.taskdb.change_runner(deleted)
    assert isinstance(await runner.ended(), errors.PermissionDenied)


async def test_stream_with_an_invalid_message_behind_its_hello_ends_with_a_status(site: Site) -> None:
    # The scheduler is writing welcome when it reads what it refuses: the status has to wait for that write.
    for number in range(40):
        runner = await site.agent(f"runner-{number}")
        runner.open()
        await runner.send(hello=runner.hello())
        await runner.send(reports=link.ReportBatch())
        async with asyncio.timeout(20):
            with pytest.raises(grpc.aio.AioRpcError):
                while True:
                    await runner._call.read()
        assert isinstance(await runner.ended(), errors.InvalidArgument)
