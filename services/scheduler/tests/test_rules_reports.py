"""Rules 7 to 12 of the link: reports, logs, checkpoints, windows. Each test carries its rule's number."""

from __future__ import annotations

import asyncio
import hashlib
import time
from datetime import timedelta

import pytest

from services.scheduler.tests.conftest import Site, SiteMaker
from taskyard import errors
from taskyard.status import from_status, to_status
from taskyard.v1 import checkpoint_pb2, common_pb2, lease_pb2, log_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1.runner_link_service_pb2_grpc import RunnerLinkServiceStub
from tests.harness.link_runner import LinkRunner


async def test_rule_07_reports_are_acknowledged_only_after_taskdb_has_committed(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    with site.taskdb.held_back("ReportRuns"):
        seq = await runner.started(assignment)
        await site.taskdb.called("ReportRuns")
        with pytest.raises(TimeoutError):
            await runner.acked(seq, timeout=0.2)
    await runner.acked(seq)


async def test_rule_07_reports_arriving_during_a_call_form_the_next_call_for_all_runners(site: Site) -> None:
    runners = [await site.runner(f"runner-{n}", capacity=50) for n in range(4)]
    site.taskdb.add_tasks(200)
    taken = [[await runner.next_assignment() for _ in range(50)] for runner in runners]
    with site.taskdb.held_back("ReportRuns"):
        await runners[0].started(taken[0][0])
        await site.taskdb.called("ReportRuns")
        for runner, assignments in zip(runners, taken, strict=True):
            for assignment in assignments:
                last = await runner.succeeded(assignment)
        for runner in runners:
            await runner.heartbeat_acked(await runner.heartbeat())
    await asyncio.gather(*(runner.acked(last) for runner in runners))
    assert [len(request.reports) for request in site.taskdb.requests("ReportRuns")] == [1, 200]


async def test_rule_07_a_start_within_its_outcome_is_one_report_to_taskdb(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    short = lease_pb2.RunReport(lease=assignment.lease, succeeded=lease_pb2.RunSucceeded())
    short.start.handle = "pid 7"
    (seq,) = await runner.report_all([short])
    await runner.acked(seq)
    (request,) = site.taskdb.requests("ReportRuns")
    assert [held.report.start.handle for held in request.reports] == ["pid 7"]


@pytest.mark.parametrize("kind", ["succeeded", "started"])
async def test_rule_07_a_start_within_a_report_is_validated(site: Site, kind: str) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    report = lease_pb2.RunReport(lease=assignment.lease)
    getattr(report, kind).SetInParent()
    report.start.SetInParent()
    if kind == "succeeded":
        report.start.handle = "x" * 257
    await runner.report_all([report])
    assert isinstance(await runner.ended(), errors.InvalidArgument)


async def test_rule_07_rejected_reports_are_acked_and_listed(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    stale = runner.forge(assignment.lease, lease_id=1)
    seq = await runner.report(stale, succeeded=lease_pb2.RunSucceeded())
    await runner.acked(seq)
    (rejection,) = runner.rejections
    assert rejection.seq == seq
    assert isinstance(from_status(rejection.status), errors.LeaseNotHeld)
    await runner.complete(assignment)
    assert site.taskdb.phase(assignment.lease.task) == "SUCCEEDED"


async def test_rule_07_reports_for_leases_never_held_are_rejected_and_do_not_affect_others(
    site: Site,
) -> None:
    owner, stranger = await site.runner(), await site.runner("runner-2", capacity=1)
    site.taskdb.add_tasks(pinned="runner-1")
    assignment = await owner.next_assignment()
    await stranger.acked(await stranger.report(assignment.lease, succeeded=lease_pb2.RunSucceeded()))
    unknown = lease_pb2.LeaseRef(task="tenants/default/tasks/nobodys", generation=3)
    await stranger.acked(await stranger.report(unknown, started=lease_pb2.RunStarted()))
    reasons = [from_status(r.status).reason for r in stranger.rejections]
    assert reasons == ["LEASE_NOT_HELD", "NOT_FOUND"]
    await owner.complete(assignment)
    assert site.taskdb.phase(assignment.lease.task) == "SUCCEEDED"


async def test_rule_07_an_old_generation_is_rejected_for_good(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    site.taskdb.tasks[assignment.lease.task].generation = 9
    await runner.acked(await runner.succeeded(assignment))
    assert [from_status(r.status).reason for r in runner.rejections] == ["STALE_GENERATION"]


async def test_rule_07_the_spool_is_resent_after_a_reconnect_and_applied_once(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    with site.taskdb.held_back("ReportRuns"):
        await runner.started(assignment)
        seq = await runner.succeeded(assignment)
        await site.taskdb.called("ReportRuns")
        await runner.vanish()
    await runner.connect()
    await runner.acked(seq)
    assert runner.rejections == []
    assert site.taskdb.phase(assignment.lease.task) == "SUCCEEDED"
    assert len(site.taskdb.tasks[assignment.lease.task].reported) == 2


async def test_rule_07_duplicates_with_new_seqs_are_acknowledged_without_effect(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    seq = await runner.complete(await runner.next_assignment())
    await runner.repeat(seq - 1, seq)
    await runner.acked(seq + 2)
    assert runner.rejections == []


async def test_rule_07_reports_out_of_order_end_the_stream(site: Site) -> None:
    runner, other = await site.runner(), await site.runner("runner-2")
    lease = lease_pb2.LeaseRef(task="tenants/default/tasks/x", generation=1)
    for seq in (5, 4):
        report = lease_pb2.RunReport(lease=lease, seq=seq, started=lease_pb2.RunStarted())
        await runner.send(reports=link.ReportBatch(reports=[report]))
    ended = await runner.ended()
    assert isinstance(ended, errors.ProtocolViolation) and "seq 4" in str(ended)
    site.taskdb.add_tasks()
    assert await other.next_assignment()


async def test_rule_07_a_report_that_breaks_a_field_rule_ends_the_stream_with_the_field_named(
    site: Site,
) -> None:
    runner = await site.runner()
    bad = lease_pb2.RunReport(
        lease=lease_pb2.LeaseRef(task="tenants/a/b", generation=1), seq=1, started=lease_pb2.RunStarted()
    )
    await runner.send(reports=link.ReportBatch(reports=[bad]))
    ended = await runner.ended()
    assert isinstance(ended, errors.FieldInvalid) and "lease.task" in str(ended)


async def test_rule_07_an_undecided_report_holds_the_ack_but_not_the_others(site: Site) -> None:
    runner = await site.runner()
    first, second = site.taskdb.add_tasks(2)
    one, two = await runner.next_assignment(), await runner.next_assignment()
    site.taskdb.results[(first, "succeeded")] = to_status(errors.StorageUnavailable())
    with site.taskdb.held_back("ReportRuns"):
        await runner.succeeded(one)
        last = await runner.succeeded(two)
    await runner.acked(last)
    assert site.taskdb.phase(first) == site.taskdb.phase(second) == "SUCCEEDED"
    assert runner.rejections == []


async def test_rule_07_a_result_that_is_being_checked_delays_no_other_report(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskyard_scheduler.reports.CHECK_SECONDS", 30.0)
    monkeypatch.setattr("taskyard_scheduler.reports.RETRY_SECONDS", 30.0)
    slow, quick = await site.runner(), await site.runner("runner-2")
    (first,) = site.taskdb.add_tasks(pinned="runner-1")
    (second,) = site.taskdb.add_tasks(pinned="runner-2")
    one, two = await slow.next_assignment(), await quick.next_assignment()
    site.taskdb.results[(first, "succeeded")] = to_status(errors.ResultCheckPending(first))
    seq = await slow.succeeded(one)
    await quick.acked(await quick.succeeded(two))
    assert site.taskdb.phase(second) == "SUCCEEDED"
    with pytest.raises(TimeoutError):
        await slow.acked(seq, timeout=0.2)


async def test_rule_07_a_result_that_is_being_checked_is_reported_again(site: Site) -> None:
    runner = await site.runner()
    (name,) = site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    site.taskdb.results[(name, "succeeded")] = to_status(errors.ResultCheckPending(name))
    await runner.acked(await runner.succeeded(assignment))
    assert site.taskdb.phase(name) == "SUCCEEDED" and runner.rejections == []


async def test_rule_07_one_report_that_taskdb_refuses_does_not_fail_its_neighbours(site: Site) -> None:
    runner = await site.runner(capacity=8)
    site.taskdb.add_tasks(8)
    assignments = [await runner.next_assignment() for _ in range(8)]
    poison = assignments[5].lease.task
    site.taskdb.poison = poison
    with site.taskdb.held_back("ReportRuns"):
        for assignment in assignments:
            last = await runner.succeeded(assignment)
        await site.taskdb.called("ReportRuns")
    await runner.acked(last)
    assert [r.lease.task for r in runner.rejections] == [poison]
    phases = [site.taskdb.phase(a.lease.task) for a in assignments if a.lease.task != poison]
    assert set(phases) == {"SUCCEEDED"}


async def test_rule_07_reports_wait_out_an_outage_of_taskdb(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    site.taskdb.failures["ReportRuns"] = [errors.StorageUnavailable()] * 5
    await runner.complete(assignment)
    assert site.taskdb.phase(assignment.lease.task) == "SUCCEEDED"


async def test_rule_08_progress_needs_no_seq_and_no_ack(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    report = lease_pb2.RunReport(lease=assignment.lease, progress=common_pb2.Progress(percent=10))
    await runner.send(reports=link.ReportBatch(reports=[report]))
    seq = await runner.started(assignment)
    await runner.acked(seq)
    kinds = [r.report.WhichOneof("report") for q in site.taskdb.requests("ReportRuns") for r in q.reports]
    assert kinds == ["progress", "started"]


async def test_rule_08_only_progress_may_come_without_a_seq(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    report = lease_pb2.RunReport(lease=assignment.lease, started=lease_pb2.RunStarted())
    await runner.send(reports=link.ReportBatch(reports=[report]))
    assert isinstance(await runner.ended(), errors.ProtocolViolation)


def log_batch(lease: lease_pb2.LeaseRef, *sequences: int) -> lease_pb2.LogBatch:
    entries = [log_pb2.LogEntry(sequence=sequence, message=f"line {sequence}") for sequence in sequences]
    return lease_pb2.LogBatch(lease=lease, entries=entries)


async def test_rule_09_logs_are_acknowledged_per_run_once_stored(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    lease = (await runner.next_assignment()).lease
    with site.taskdb.held_back("AppendLogs"):
        await runner.send(logs=log_batch(lease, 1, 2))
        await site.taskdb.called("AppendLogs")
        assert runner.messages("log_ack") == []
        await runner.send(logs=log_batch(lease, 3))
        await runner.send(logs=log_batch(lease, 4, 5))
        await runner.heartbeat_acked(await runner.heartbeat())
    ack = await runner.message("log_ack", lambda m: m.log_ack.through_sequence == 5)
    assert ack.log_ack.lease == lease
    stored = [entry.sequence for _, batch in site.taskdb.logs for entry in batch.entries]
    assert stored == [1, 2, 3, 4, 5]
    assert len(site.taskdb.requests("AppendLogs")) == 2


async def test_rule_11_logs_are_stored_no_faster_than_their_rate(make_site: SiteMaker) -> None:
    site: Site = await make_site(max_log_bytes_per_second=20_000)
    runner = await site.runner()
    assert runner.welcome is not None and runner.welcome.flow.max_log_bytes_per_second == 20_000
    site.taskdb.add_tasks()
    lease = (await runner.next_assignment()).lease
    began = time.monotonic()
    for sequence in range(1, 7):
        batch = log_batch(lease, sequence)
        batch.entries[0].message = "x" * 10_000
        await runner.send(logs=batch)
    await runner.message("log_ack", lambda m: m.log_ack.through_sequence == 6, timeout=30)
    # The first second's worth comes at once, the rest at 20 kB a second.
    assert time.monotonic() - began >= 1.0
    # A report is not held up by logs that wait.
    for sequence in range(7, 12):
        batch = log_batch(lease, sequence)
        batch.entries[0].message = "x" * 10_000
        await runner.send(logs=batch)
    await runner.acked(await runner.report(lease, started=lease_pb2.RunStarted()), timeout=5)


async def test_rule_09_logs_do_not_delay_reports(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    with site.taskdb.held_back("AppendLogs"):
        await runner.send(logs=log_batch(assignment.lease, 1))
        await site.taskdb.called("AppendLogs")
        await runner.complete(assignment)


def chunks(lease: lease_pb2.LeaseRef, data: bytes, sequence: int = 1) -> list[checkpoint_pb2.CheckpointChunk]:
    header = checkpoint_pb2.CheckpointHeader(
        task=lease.task,
        generation=lease.generation,
        lease_id=lease.lease_id,
        sequence=sequence,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).digest(),
    )
    size = 256 * 1024
    pieces = [
        checkpoint_pb2.CheckpointChunk(header=header, offset=at, data=data[at : at + size])
        for at in range(0, len(data), size)
    ]
    pieces[-1].last = True
    return pieces


async def test_rule_10_a_checkpoint_is_acknowledged_once_stored_and_can_be_read_back(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    lease = (await runner.next_assignment()).lease
    data = bytes(range(256)) * 40_000
    for chunk in chunks(lease, data):
        await runner.send(checkpoint_chunk=chunk)
    ack = (await runner.message("checkpoint_ack")).checkpoint_ack
    assert (ack.lease, ack.sequence, ack.status.code) == (lease, 1, 0)
    assert site.taskdb.checkpoints[lease.task] == (1, data)

    stub = RunnerLinkServiceStub(await site.channel())
    request = link.DownloadCheckpointRequest(runner_id="runner-1", lease=lease)
    read = [piece async for piece in stub.DownloadCheckpoint(request)]
    assert read[0].checkpoint.sequence == 1
    assert b"".join(piece.data for piece in read) == data


async def test_rule_10_pieces_of_different_tasks_may_interleave(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks(2)
    one, two = (await runner.next_assignment()).lease, (await runner.next_assignment()).lease
    first, second = chunks(one, b"a" * 600_000), chunks(two, b"b" * 600_000)
    for pair in zip(first, second, strict=True):
        for chunk in pair:
            await runner.send(checkpoint_chunk=chunk)
    await runner.message("checkpoint_ack", lambda m: m.checkpoint_ack.lease == one)
    await runner.message("checkpoint_ack", lambda m: m.checkpoint_ack.lease == two)
    assert site.taskdb.checkpoints[one.task][1] == b"a" * 600_000
    assert site.taskdb.checkpoints[two.task][1] == b"b" * 600_000


async def test_rule_10_two_uploads_for_one_task_at_a_time_are_a_violation(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    lease = (await runner.next_assignment()).lease
    for sequence in (1, 2):
        await runner.send(checkpoint_chunk=chunks(lease, b"a" * 600_000, sequence)[0])
    assert isinstance(await runner.ended(), errors.ProtocolViolation)


async def test_rule_10_a_refused_checkpoint_is_acknowledged_with_the_reason(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    lease = (await runner.next_assignment()).lease
    site.taskdb.failures["WriteCheckpoint"] = [errors.CheckpointSequenceConflict(lease.task, 1, 4)]
    for chunk in chunks(lease, b"a" * 10):
        await runner.send(checkpoint_chunk=chunk)
    ack = (await runner.message("checkpoint_ack")).checkpoint_ack
    assert isinstance(from_status(ack.status), errors.CheckpointSequenceConflict)
    assert runner.connected


@pytest.mark.parametrize(
    "failure",
    [errors.StorageUnavailable("unknown"), errors.Internal("c1"), errors.Overloaded("taskdb", "1 call")],
    ids=["unavailable", "internal", "overloaded"],
)
async def test_rule_10_checkpoint_that_cannot_be_stored_now_is_requested_again(
    site: Site, failure: errors.TaskyardError
) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    lease = (await runner.next_assignment()).lease
    site.taskdb.failures["WriteCheckpoint"] = [failure]
    pieces = chunks(lease, b"a" * 600_000)
    for chunk in pieces:
        await runner.send(checkpoint_chunk=chunk)
    retry = (await runner.message("checkpoint_retry")).checkpoint_retry
    assert (retry.lease, retry.sequence) == (lease, 1)
    # grpc.aio itself ends a call so whose write fails before the status has arrived, about every fifth one
    # that is refused while it writes; no other status takes the place of that of taskdb.
    of_grpc = (errors.Code.INTERNAL, "Internal error from Core")
    assert retry.status.code == failure.code or (retry.status.code, retry.status.message) == of_grpc
    for chunk in pieces:
        await runner.send(checkpoint_chunk=chunk)
    ack = (await runner.message("checkpoint_ack")).checkpoint_ack
    assert (ack.sequence, ack.status.code) == (1, 0)
    assert site.taskdb.checkpoints[lease.task] == (1, b"a" * 600_000)


async def test_rule_10_upload_that_failed_half_way_may_begin_again(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks()
    lease = (await runner.next_assignment()).lease
    data = b"a" * 10_000_000
    pieces = chunks(lease, data)
    site.taskdb.failures["WriteCheckpoint"] = [errors.StorageUnavailable("unknown")]
    for chunk in pieces[:-1]:
        await runner.send(checkpoint_chunk=chunk)
        await runner.heartbeat_acked(await runner.heartbeat())
        if runner.messages("checkpoint_retry"):
            break
    assert runner.messages("checkpoint_retry"), "sent before the last piece"
    for chunk in pieces:
        await runner.send(checkpoint_chunk=chunk)
    await runner.message("checkpoint_ack")
    assert site.taskdb.checkpoints[lease.task] == (1, data)


async def test_rule_11_welcome_names_the_windows(site: Site) -> None:
    runner = await site.runner()
    assert runner.welcome is not None
    assert runner.welcome.flow.max_unacked_reports == 1000
    assert runner.welcome.flow.max_unacked_bytes >= 10 * 1024 * 1024, "a whole checkpoint fits"


async def flood(runner: LinkRunner, count: int) -> None:
    runner.ignore_windows = True
    lease = lease_pb2.LeaseRef(task="tenants/default/tasks/x", generation=1)
    for _ in range(count):
        await runner.report(lease, started=lease_pb2.RunStarted())


async def test_rule_11_a_window_may_be_overrun_a_little_but_not_twice_over(make_site: SiteMaker) -> None:
    site = await make_site(max_unacked_reports=10)
    runner, other = await site.runner(), await site.runner("runner-2")
    with site.taskdb.held_back("ReportRuns"):
        await flood(runner, 20)
        await runner.heartbeat_acked(await runner.heartbeat())
        assert runner.connected
        await flood(runner, 1)
        ended = await runner.ended()
        assert isinstance(ended, errors.WindowExceeded)
        assert other.connected
    site.taskdb.add_tasks()
    assert await other.next_assignment()


async def test_rule_11_heartbeats_are_never_counted(make_site: SiteMaker) -> None:
    site = await make_site(max_unacked_reports=1)
    runner = await site.runner(heartbeats=False)
    with site.taskdb.held_back("RenewSessions"):
        for _ in range(10):
            await runner.heartbeat()
    await runner.heartbeat_acked(10)


async def test_rule_11_bulk_is_held_while_taskdb_is_away(site: Site) -> None:
    runner = await site.runner()
    port = site.taskdb.port
    await site.taskdb.stop()
    await runner.message("flow", lambda m: m.flow.hold_bulk)
    await site.taskdb.start(port)
    await runner.message("flow", lambda m: not m.flow.hold_bulk)


async def test_rule_12_many_assignments_share_a_message_of_bounded_size(site: Site) -> None:
    runner = await site.runner(capacity=600)
    site.taskdb.add_tasks(500)
    for _ in range(500):
        await runner.next_assignment()
    assert len(runner.messages("assignments")) < 50
    site.taskdb.add_tasks(20, payload={"raw": b"x" * 100_000})
    for _ in range(20):
        await runner.next_assignment()
    assert max(m.ByteSize() for m in runner.messages("assignments")) < 512 * 1024


async def test_rule_12_runner_that_does_not_read_does_not_delay_others(make_site: SiteMaker) -> None:
    # 50 MB pass through this one process: on a busy machine that takes longer than the quick settings allow
    # between two heartbeats.
    site = await make_site(
        heartbeat_interval=timedelta(seconds=10),
        lease_duration=timedelta(seconds=30),
        first_lease=timedelta(seconds=15),
    )
    frozen, other = await site.runner(capacity=100), await site.runner("runner-2")
    frozen._reading.clear()
    site.taskdb.add_tasks(50, pinned="runner-1", payload={"raw": b"x" * 1_000_000})
    await site.taskdb.called("ClaimForRunners")
    site.taskdb.add_tasks(3, pinned="runner-2")
    for _ in range(3):
        await other.complete(await other.next_assignment())
    seq = await frozen.report(
        lease_pb2.LeaseRef(task="tenants/default/tasks/t1", generation=7), started=lease_pb2.RunStarted()
    )
    while seq not in [r.report.seq for q in site.taskdb.requests("ReportRuns") for r in q.reports]:
        await site.taskdb.called("ReportRuns", len(site.taskdb.requests("ReportRuns")) + 1)


async def test_rule_12_oversized_message_ends_the_stream_and_does_not_affect_others(site: Site) -> None:
    runner, other = await site.runner(), await site.runner("runner-2")
    lease = lease_pb2.LeaseRef(task="tenants/default/tasks/t1", generation=1)
    batch = log_batch(lease, *range(1, 200))
    for entry in batch.entries:
        entry.message = "x" * 30_000
    await runner.send(logs=batch)
    ended = await runner.ended()
    assert ended is not None and ended.code == errors.Code.RESOURCE_EXHAUSTED
    site.taskdb.add_tasks()
    assert await other.next_assignment()
