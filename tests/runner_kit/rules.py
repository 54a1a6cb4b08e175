"""One play per numbered rule of the link; a play raises AssertionError with what the runner did instead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from services.runner.tests.scheduler_peer import Task, duration, run_key
from taskyard.v1 import lease_pb2, runner_pb2, task_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from tests.runner_kit.checkpoints import rule_10
from tests.runner_kit.peer import UNKNOWN_MEMBER, KitScheduler, listed, spec_of
from tests.runner_kit.subject import Runner, subject

Play = Callable[[Runner, Path], Awaitable[None]]
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
# How long an act may take that a rule does not bound, on a busy machine.
SOON = 30.0


async def rule_1(command: Runner, folder: Path) -> None:
    """Hello is first and once; nothing before welcome; after a loss it lists everything."""
    async with subject(command, folder, heartbeat_interval=1.0) as runner:
        peer = runner.peer
        running = peer.assign(spec_of("sh", "-c", runner.until_open("gate")))
        await peer.report(running, "started")
        peer.ack_reports = False
        ended = peer.assign(spec_of("true"))
        await peer.outcome(ended)
        peer.may_welcome.clear()
        peer.drop()
        second = await peer.session_number(2)
        # The bound of the rule is the welcome itself: what comes while it is held back breaks it.
        await asyncio.sleep(1.5)
        kinds = [message.WhichOneof("message") for _, message in second.messages]
        assert kinds == ["hello"], f"sent {kinds[1:]} before welcome"
        held = second.hello.held
        state = getattr(listed(held, running), "state", None)
        assert state == link.HELD_STATE_RUNNING, f"hello does not list the running task as RUNNING: {held}"
        state = getattr(listed(held, ended), "state", None)
        assert state == link.HELD_STATE_ENDED, f"hello does not list the unacknowledged outcome: {held}"
        assert second.hello.instance_id == peer.sessions[0].hello.instance_id, "another instance_id"
        peer.may_welcome.set()
        peer.ack_reports = True
        runner.path("gate").touch()
        await peer.outcome(running)
        assert not peer.faults, peer.faults


async def rule_2(command: Runner, folder: Path) -> None:
    """An aborted run stops and is not reported; a later generation of the task runs."""
    async with subject(command, folder, heartbeat_interval=1.0) as runner:
        peer = runner.peer
        lost = peer.assign(spec_of(*runner.beating("beat")))
        await peer.report(lost, "started")
        peer.verdicts = [_verdict(lost, lease_pb2.LEASE_ACTION_ABORT)]
        peer.drop()
        await peer.session_number(2)
        assert await runner.has_stopped("beat", SOON), "the aborted workload goes on"
        peer.verdicts = []
        name = lost.assignment.lease.task
        again = peer.assign(spec_of("true"), name=name, generation=2)
        outcome = await peer.outcome(again)
        assert outcome.WhichOneof("report") == "succeeded", outcome
        kinds = [report.WhichOneof("report") for report in peer.reports[lost.key]]
        assert kinds == ["started"], f"the aborted run was reported as {kinds[1:]}"


async def rule_3(command: Runner, folder: Path) -> None:
    """A repeated assignment is the same assignment; one whose lease has run out is released."""
    async with subject(command, folder, heartbeat_interval=1.0) as runner:
        peer = runner.peer
        text = f"echo run >> {runner.path('runs')}; {runner.until_open('gate')}"
        task = peer.assign(spec_of("sh", "-c", text))
        await peer.report(task, "started")
        peer.send(task, task)
        await peer.heartbeats(2)
        runner.path("gate").touch()
        await peer.outcome(task)
        await peer.heartbeats(1)
        runs = runner.path("runs").read_text().split()
        assert runs == ["run"], f"the repeated assignment was executed {len(runs)} times"
        started = [r.seq for r in peer.reports[task.key] if r.WhichOneof("report") == "started"]
        assert len(set(started)) == 1, f"started was reported with the seqs {started}"
        late = peer.task(spec_of("touch", str(runner.path("late"))))
        late.assignment.lease_ttl.CopyFrom(duration(0.001))
        # Hello was the last heartbeat that the scheduler had received: long ago.
        late.assignment.heartbeat_id = 0
        peer.session.send(assignments=link.Assignments(assignments=[late.assignment]))
        outcome = await peer.outcome(late)
        assert outcome.WhichOneof("report") == "released", f"not released: {outcome}"
        assert not runner.path("late").exists(), "a task whose lease had run out was executed"


async def rule_4(command: Runner, folder: Path) -> None:
    """Accepted assignments are listed in a heartbeat within 1 s; others are released."""
    async with subject(
        command, folder, heartbeat_interval=30.0, lease_duration=90.0, first_lease=60.0
    ) as runner:
        peer = runner.peer
        begun = time.monotonic()
        task = peer.assign(spec_of("sh", "-c", runner.until_open("gate")))
        await peer.until(lambda: any(listed(beat.changed, task) for beat in peer.last.heartbeats), SOON)
        took = time.monotonic() - begun
        # A second, and what a busy machine adds; the next regular heartbeat is half a minute away.
        assert took < 5.0, f"listed after {took:.1f} s, allowed is 1 s"
        foreign = peer.assign(
            task_pb2.TaskSpec(execution=task_pb2.Execution(external=task_pb2.ExternalExecution()))
        )
        outcome = await peer.outcome(foreign)
        assert outcome.WhichOneof("report") == "released", f"an unsupported kind is not released: {outcome}"
        runner.path("gate").touch()


async def rule_5(command: Runner, folder: Path) -> None:
    """Heartbeats: on time, differences only, full on request; a lease counts from the sending."""
    async with subject(command, folder, heartbeat_interval=0.5) as runner:
        peer = runner.peer
        task = peer.assign(spec_of("sh", "-c", runner.until_open("gate")))
        await peer.report(task, "started")
        await peer.heartbeats(2)
        begun, count = time.monotonic(), len(peer.last.heartbeats)
        await peer.heartbeats(4)
        pace = (time.monotonic() - begun) / 4
        assert pace < 1.5, f"a heartbeat every {pace:.1f} s, asked for is one every 0.5 s"
        later = peer.last.heartbeats[count:]
        repeated = [beat.heartbeat_id for beat in later if beat.changed and not beat.full]
        assert not repeated, f"heartbeats {repeated} list what has not changed"
        assert {beat.held_count for beat in later} == {1}, f"held_count is {[b.held_count for b in later]}"
        peer.session.send(
            heartbeat_ack=link.HeartbeatAck(
                heartbeat_id=peer.last.last_heartbeat_id, lease_ttl=duration(30), full_requested=True
            )
        )
        count = len(peer.last.heartbeats)
        await peer.until(lambda: any(b.full for b in peer.last.heartbeats[count:]), 10.0)
        full = next(beat for beat in peer.last.heartbeats[count:] if beat.full)
        assert listed(full.changed, task), f"the full heartbeat does not list the task: {full}"
        runner.path("gate").touch()
        await peer.outcome(task)
        await peer.until(
            lambda: any(run_key(d) == task.key for b in peer.last.heartbeats for d in b.dropped), SOON
        )
    await _lease_counts_from_the_sending(command, folder / "lease")


async def _lease_counts_from_the_sending(command: Runner, folder: Path) -> None:
    async with subject(
        command, folder, heartbeat_interval=3.0, lease_duration=4.0, first_lease=4.0
    ) as runner:
        peer = runner.peer
        spec = spec_of(*runner.beating("beat"), overlap=task_pb2.OVERLAP_POLICY_FORBID)
        task = peer.assign(spec)
        await peer.report(task, "started")
        peer.ack_heartbeats = False
        stopped = await runner.has_stopped("beat", 20.0)
        assert stopped, "work that must not overlap goes on without a lease"


async def rule_6(command: Runner, folder: Path) -> None:
    """No ack for 3 intervals: the runner reconnects, and its work goes on."""
    async with subject(command, folder, heartbeat_interval=0.5) as runner:
        peer = runner.peer
        task = peer.assign(spec_of("sh", "-c", runner.until_open("gate")))
        await peer.report(task, "started")
        peer.ack_heartbeats = False
        await peer.session_number(2, 20.0)
        peer.ack_heartbeats = True
        runner.path("gate").touch()
        assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"


async def rule_7(command: Runner, folder: Path) -> None:
    """Reports are spooled: in order, again after a loss and a crash until acknowledged, never after."""
    # The scheduler takes short runs: a runner may report them in columns.
    async with subject(command, folder, heartbeat_interval=0.5, short_runs=True) as runner:
        peer = runner.peer
        peer.ack_reports = False
        task = peer.assign(spec_of("true"))
        await peer.outcome(task)
        sent = [(report.seq, report.WhichOneof("report")) for report in peer.last.spooled()]
        assert [kind for _, kind in sent] == ["started", "succeeded"], f"sent {sent}"
        assert sent[0][0] < sent[1][0], f"seqs do not ascend: {sent}"
        peer.drop()
        second = await peer.session_number(2)
        await _until_sent(peer, second.spooled, len(sent), "reports are not sent again after a loss")
        again = [(report.seq, report.WhichOneof("report")) for report in second.spooled()]
        assert again == sent, f"sent {again} again, expected {sent}"
        peer.ack_all()
        await peer.heartbeats(3)
        peer.drop()
        third = await peer.session_number(3)
        await peer.heartbeats(3)
        assert not third.spooled(), f"acknowledged reports are sent again: {third.spooled()}"
        peer.ack_reports = False
        crashed = peer.assign(spec_of("true"))
        first = await peer.outcome(crashed)
        await runner.kill()
        await runner.start()
        fourth = await peer.session_number(4, 60.0)
        await _until_sent(peer, fourth.spooled, 1, "the spool did not survive kill -9")
        kept = [
            r for r in fourth.spooled() if r.WhichOneof("report") == "succeeded" and r.lease == first.lease
        ]
        assert kept and kept[0].seq == first.seq, f"the outcome did not survive kill -9: {fourth.spooled()}"
        peer.ack_all()


async def _until_sent(
    peer: KitScheduler, reports: Callable[[], list[lease_pb2.RunReport]], count: int, problem: str
) -> None:
    try:
        await peer.until(lambda: len(reports()) >= count, 15.0)
    except TimeoutError:
        raise AssertionError(problem) from None


async def rule_8(command: Runner, folder: Path) -> None:
    """Progress is not spooled: it has seq 0."""
    async with subject(command, folder, heartbeat_interval=0.5) as runner:
        peer = runner.peer
        await peer.outcome(peer.assign(spec_of("true")))
        spooled = [
            report for report in peer.order if report.WhichOneof("report") == "progress" and report.seq
        ]
        assert not spooled, f"progress came through the spool: {spooled}"


async def rule_9(command: Runner, folder: Path) -> None:
    """Logs are numbered per run, and sent again until acknowledged."""
    async with subject(command, folder, heartbeat_interval=0.5) as runner:
        peer = runner.peer
        peer.ack_logs = False
        task = peer.assign(
            spec_of("sh", "-c", f"echo one; echo two; echo three; {runner.until_open('gate')}")
        )
        entries = await peer.lines(task, 3)
        found = [(entry.sequence, entry.message) for entry in entries]
        assert found == [(1, "one"), (2, "two"), (3, "three")], f"the log is {found}"
        peer.drop()
        second = await peer.session_number(2)
        peer.ack_logs = True
        await peer.until(lambda: sum(len(batch.entries) for batch in second.of("logs")) >= 3, SOON)
        again = [entry.sequence for batch in second.of("logs") for entry in batch.entries]
        assert again == [1, 2, 3], f"sent {again} again"
        runner.path("gate").touch()
        outcome = await peer.outcome(task)
        if outcome.HasField("log_sequence"):
            assert outcome.log_sequence == 3, f"log_sequence of the outcome is {outcome.log_sequence}"


async def rule_11(command: Runner, folder: Path) -> None:
    """No more than the window is in flight; heartbeats are not counted."""
    flow = link.FlowControl(max_unacked_reports=2, max_unacked_bytes=1 << 20)
    async with subject(command, folder, heartbeat_interval=0.5, flow=flow) as runner:
        peer = runner.peer
        peer.ack_reports = False
        tasks = [peer.assign(spec_of("true")) for _ in range(4)]
        await peer.until(lambda: len(peer.last.spooled()) >= 2, SOON)
        await peer.heartbeats(4)
        in_flight = len(peer.last.spooled())
        assert in_flight <= 2, f"{in_flight} reports in flight, the window is 2"
        peer.ack_all()
        for task in tasks:
            await peer.outcome(task)


async def rule_12(command: Runner, folder: Path) -> None:
    """The runner reads while it cannot write; no message is above 4 MiB."""
    async with subject(
        command, folder, heartbeat_interval=30.0, lease_duration=90.0, first_lease=60.0
    ) as runner:
        peer = runner.peer
        line = "x" * 1000
        text = (
            f"while :; do for i in 1 2 3 4 5 6 7 8 9; do echo {line}; done; touch {runner.path('beat')}; done"
        )
        task = peer.assign(spec_of("sh", "-c", text))
        await peer.report(task, "started")
        peer.may_read.clear()
        await asyncio.sleep(3)
        peer.send_verdict(task, lease_pb2.LEASE_ACTION_CANCEL, grace=1)
        stopped = await runner.has_stopped("beat", SOON)
        peer.may_read.set()
        assert stopped, "a cancel is not carried out while the scheduler does not read"
        assert peer.largest <= MAX_MESSAGE_BYTES, f"a message has {peer.largest} bytes"


async def rule_13(command: Runner, folder: Path) -> None:
    """Commands are desired state: repeating one is harmless."""
    async with subject(command, folder, heartbeat_interval=0.5) as runner:
        peer = runner.peer
        task = peer.assign(spec_of(*runner.beating("beat")))
        await peer.report(task, "started")
        peer.verdicts = [_verdict(task, lease_pb2.LEASE_ACTION_CANCEL)]
        for _ in range(3):
            peer.send_verdict(task, lease_pb2.LEASE_ACTION_CANCEL, grace=1)
        outcome = await peer.outcome(task)
        assert outcome.WhichOneof("report") == "cancelled", outcome
        peer.verdicts = []
        await peer.heartbeats(3)
        outcomes = {r.seq for r in peer.reports[task.key] if r.WhichOneof("report") == "cancelled"}
        assert len(outcomes) == 1, f"{len(outcomes)} outcomes of one cancel"
        going = peer.assign(spec_of("sh", "-c", runner.until_open("gate")))
        await peer.report(going, "started")
        drain = runner_pb2.DrainRequest(mode=runner_pb2.DRAIN_MODE_FINISH)
        for _ in range(2):
            peer.session.send(command=link.Command(drain=drain))
        await peer.heartbeats(2)
        runner.path("gate").touch()
        assert (await peer.outcome(going)).WhichOneof("report") == "succeeded", "a drain stopped the task"
        for _ in range(2):
            peer.session.send(command=link.Command(undrain=link.UndrainCommand()))
        await peer.heartbeats(1)
        after = await peer.outcome(peer.assign(spec_of("true")))
        assert after.WhichOneof("report") == "succeeded", f"takes no work after undrain: {after}"


async def rule_14(command: Runner, folder: Path) -> None:
    """Goodbye of the scheduler: half-close, wait, reconnect; goodbye of the runner ends its session."""
    async with subject(command, folder, heartbeat_interval=0.5) as runner:
        peer = runner.peer
        task = peer.assign(spec_of("sh", "-c", runner.until_open("gate")))
        await peer.report(task, "started")
        first, begun = peer.last, time.monotonic()
        reason = link.SERVER_GOODBYE_REASON_SHUTDOWN
        peer.session.send(goodbye=link.ServerGoodbye(reason=reason, reconnect_after=duration(2)))
        await peer.until(lambda: first.ended, SOON)
        await peer.session_number(2)
        waited = time.monotonic() - begun
        assert waited >= 1.8, f"back after {waited:.1f} s, asked for were 2 s"
        runner.path("gate").touch()
        assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
        await peer.heartbeats(2)
        last = peer.last
        await runner.stop()
        assert last.goodbye is not None, "the runner ended without a goodbye"


async def rule_15(command: Runner, folder: Path) -> None:
    """Unknown members are ignored; the hello names a version."""
    async with subject(command, folder, heartbeat_interval=0.5) as runner:
        peer = runner.peer
        assert peer.last.hello.protocol_version >= 1
        peer.push(UNKNOWN_MEMBER)
        await peer.heartbeats(2)
        outcome = await peer.outcome(peer.assign(spec_of("true")))
        assert outcome.WhichOneof("report") == "succeeded", outcome
        assert len(peer.sessions) == 1, "an unknown member ended the session"


def _verdict(task: Task, action: lease_pb2.LeaseAction.ValueType) -> lease_pb2.LeaseVerdict:
    return lease_pb2.LeaseVerdict(lease=task.assignment.lease, action=action, grace_period=duration(1))


PLAYS: dict[int, Play] = {
    1: rule_1,
    2: rule_2,
    3: rule_3,
    4: rule_4,
    5: rule_5,
    6: rule_6,
    7: rule_7,
    8: rule_8,
    9: rule_9,
    10: rule_10,
    11: rule_11,
    12: rule_12,
    13: rule_13,
    14: rule_14,
    15: rule_15,
}
