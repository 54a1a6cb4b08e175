"""Rules 7 and 11 of the link for short runs, which are reported in columns."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from services.scheduler.tests.conftest import Site, SiteMaker
from services.scheduler.tests.test_rules_work import drained
from taskyard import errors
from taskyard.status import from_status, to_status
from taskyard.v1 import lease_pb2, lease_service_pb2, task_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard_scheduler.rpc.check import check_short_runs
from tests.harness.deep_results import deep_result
from tests.harness.link_runner import LinkRunner, short_runs

OLDER = "tenants/default/tasks/x"


async def assigned(site: Site, runner: LinkRunner, count: int, **fields: Any) -> list[lease_pb2.Assignment]:
    """Tasks that the runner has received."""
    site.taskdb.add_tasks(count, pinned=runner.runner_id, **fields)
    return [await runner.next_assignment() for _ in range(count)]


def phases(site: Site, assignments: list[lease_pb2.Assignment]) -> set[str]:
    return {site.taskdb.phase(assignment.lease.task) for assignment in assignments}


async def test_the_scheduler_announces_that_it_takes_short_runs(site: Site) -> None:
    runner = await site.runner()
    assert runner.welcome is not None and runner.welcome.short_runs


async def test_rule_07_short_runs_are_acknowledged_only_after_taskdb_has_committed(site: Site) -> None:
    runner = await site.runner()
    assignments = await assigned(site, runner, 3)
    with site.taskdb.held_back("CompleteRuns"):
        seq = await runner.report_short(assignments)
        await site.taskdb.called("CompleteRuns")
        with pytest.raises(TimeoutError):
            await runner.acked(seq, timeout=0.2)
    await runner.acked(seq)
    assert phases(site, assignments) == {"SUCCEEDED"} and not site.taskdb.requests("ReportRuns")


async def test_rule_07_blocks_arriving_during_a_call_form_the_next_call_for_all_runners(site: Site) -> None:
    runners = [await site.runner(f"runner-{n}", capacity=40) for n in range(3)]
    taken = [await assigned(site, runner, 31) for runner in runners]
    with site.taskdb.held_back("CompleteRuns"):
        await runners[0].report_short(taken[0][:1])
        await site.taskdb.called("CompleteRuns")
        for runner, assignments in zip(runners, taken, strict=True):
            await runner.report_short(assignments[1:11])
            last = await runner.report_short(assignments[11:31])
            await runner.heartbeat_acked(await runner.heartbeat())
    await asyncio.gather(*(runner.acked(last) for runner in runners[1:]), runners[0].acked(last + 1))
    sizes = [[len(h.runs.tasks) for h in call.holders] for call in site.taskdb.requests("CompleteRuns")]
    assert sizes == [[1], [30, 30, 30]]


async def test_rule_07_seqs_ascend_over_reports_and_short_runs(site: Site) -> None:
    runner = await site.runner(capacity=8)
    assignments = await assigned(site, runner, 4)
    await runner.succeeded(assignments[0])
    await runner.report_short(assignments[1:3])
    await runner.acked(await runner.succeeded(assignments[3]))
    assert phases(site, assignments) == {"SUCCEEDED"} and runner.through_seq == 4


@pytest.mark.parametrize("first_seq", [2, 3])
async def test_rule_07_short_runs_out_of_order_end_the_stream(site: Site, first_seq: int) -> None:
    runner = await site.runner()
    refs = [lease_pb2.LeaseRef(task=OLDER, generation=1)] * 2
    await runner.send(short_runs=short_runs(refs, 2))
    await runner.send(short_runs=short_runs(refs, first_seq))
    ended = await runner.ended()
    assert isinstance(ended, errors.ProtocolViolation) and f"seq {first_seq} came after 3" in str(ended)


async def test_rule_07_a_report_within_the_seqs_of_a_block_ends_the_stream(site: Site) -> None:
    runner = await site.runner()
    ref = lease_pb2.LeaseRef(task=OLDER, generation=1)
    await runner.send(short_runs=short_runs([ref] * 3, 1))
    report = lease_pb2.RunReport(lease=ref, seq=3, started=lease_pb2.RunStarted())
    await runner.send(reports=link.ReportBatch(reports=[report]))
    assert isinstance(await runner.ended(), errors.ProtocolViolation)


async def test_rule_07_one_rejected_run_of_a_block_is_acked_and_listed(site: Site) -> None:
    runner = await site.runner()
    assignments = await assigned(site, runner, 3)
    stale = site.taskdb.tasks[assignments[1].lease.task]
    stale.generation = 9
    await runner.acked(await runner.report_short(assignments))
    (rejection,) = runner.rejections
    assert (rejection.seq, rejection.lease) == (2, assignments[1].lease)
    assert isinstance(from_status(rejection.status), errors.StaleGeneration)
    assert phases(site, [assignments[0], assignments[2]]) == {"SUCCEEDED"}


async def test_rule_07_a_block_is_repeated_after_a_reconnect_and_applied_once(site: Site) -> None:
    runner = await site.runner()
    assignments = await assigned(site, runner, 2)
    with site.taskdb.held_back("CompleteRuns"):
        seq = await runner.report_short(assignments)
        await site.taskdb.called("CompleteRuns")
        await runner.vanish()
    spool, runner.spool = runner.spool, {}
    await runner.connect()
    runner.spool = spool
    await runner.send(short_runs=short_runs([assignment.lease for assignment in assignments]))
    await runner.acked(seq)
    assert runner.rejections == [] and phases(site, assignments) == {"SUCCEEDED"}


async def test_rule_07_an_older_taskdb_gets_reports_until_it_is_reached_again(site: Site) -> None:
    site.taskdb.completes = False
    runner = await site.runner()
    assignments = await assigned(site, runner, 4)
    result = task_pb2.TaskResult()
    result.output.raw = b"[7]"
    columns = {"exit_codes": [7], "results": [result.SerializeToString()], "log_sequences": [5]}
    await runner.acked(
        await runner.report_short(assignments[:1], start_times=[1_500_000], start_checkpoints=[3], **columns)
    )
    await runner.acked(await runner.report_short(assignments[1:3]))
    assert phases(site, assignments[:3]) == {"SUCCEEDED"}
    assert len(site.taskdb.requests("CompleteRuns")) == 1
    first, second = site.taskdb.requests("ReportRuns")
    assert len(second.reports) == 2
    report = first.reports[0].report
    assert (report.lease, report.seq) == (assignments[0].lease, 1)
    assert (report.start_time.seconds, report.start_time.nanos) == (1, 500_000_000)
    assert (report.succeeded.exit_code, report.succeeded.result) == (7, result)
    assert (report.log_sequence, report.start.checkpoint_sequence) == (5, 3)
    site.taskdb.completes = True
    site.taskdb.publish(lease_service_pb2.WatchQueueResponse(full=True))
    # Its command shows that the scheduler has read the messages before it.
    site.taskdb.change_runner(drained("runner-1"))
    await runner.message("command")
    await runner.acked(await runner.report_short(assignments[3:]))
    assert len(site.taskdb.requests("CompleteRuns")) == 2


@pytest.mark.parametrize("error", [errors.StorageUnavailable(), errors.ResultCheckPending(OLDER)])
async def test_rule_07_one_undecided_run_holds_the_ack_of_its_block_only(
    site: Site, error: errors.TaskyardError
) -> None:
    runner, other = await site.runner(), await site.runner("runner-2")
    assignments, others = await assigned(site, runner, 3), await assigned(site, other, 1)
    site.taskdb.results[(assignments[1].lease.task, "succeeded")] = to_status(error)
    seq = await runner.report_short(assignments)
    await other.acked(await other.report_short(others))
    await runner.acked(seq)
    assert phases(site, assignments) == {"SUCCEEDED"} and runner.rejections == []
    (alone,) = site.taskdb.requests("ReportRuns")
    assert [held.report.seq for held in alone.reports] == [2]


async def test_rule_07_one_run_that_taskdb_refuses_does_not_fail_its_block(site: Site) -> None:
    runner = await site.runner(capacity=8)
    assignments = await assigned(site, runner, 8)
    site.taskdb.poison = poison = assignments[5].lease.task
    await runner.acked(await runner.report_short(assignments))
    assert [(found.seq, found.lease.task) for found in runner.rejections] == [(6, poison)]
    assert phases(site, assignments[:5] + assignments[6:]) == {"SUCCEEDED"}


async def test_rule_07_short_runs_wait_out_an_outage_of_taskdb(site: Site) -> None:
    runner = await site.runner()
    assignments = await assigned(site, runner, 2)
    site.taskdb.failures["CompleteRuns"] = [errors.StorageUnavailable()] * 3
    await runner.acked(await runner.report_short(assignments))
    assert phases(site, assignments) == {"SUCCEEDED"}


async def test_rule_07_short_runs_overtake_no_report_of_their_runner(site: Site) -> None:
    runner, other = await site.runner(capacity=8), await site.runner("runner-2")
    assignments, others = await assigned(site, runner, 4), await assigned(site, other, 1)
    with site.taskdb.held_back("CompleteRuns"):
        await runner.report_short(assignments[:1])
        await site.taskdb.called("CompleteRuns")
        await runner.report_short(assignments[1:2])
        await runner.succeeded(assignments[2])
        last = await runner.report_short(assignments[3:])
        await runner.heartbeat_acked(await runner.heartbeat())
        other_last = await other.report_short(others)
        await other.heartbeat_acked(await other.heartbeat())
    await runner.acked(last)
    await other.acked(other_last)
    calls = [name for name, _ in site.taskdb.calls if name in ("CompleteRuns", "ReportRuns")]
    assert calls == ["CompleteRuns", "CompleteRuns", "ReportRuns", "CompleteRuns"]
    # The other runner's is in the first call that could take it.
    assert [holder.runner_id for holder in site.taskdb.requests("CompleteRuns")[1].holders] == [
        "runner-1",
        "runner-2",
    ]


async def test_rule_03_a_block_frees_the_places_of_its_runs_at_once(site: Site) -> None:
    runner = await site.runner(capacity=3, heartbeats=False)
    assignments = await assigned(site, runner, 3)
    site.taskdb.add_tasks(3)
    with site.taskdb.held_back("CompleteRuns"):
        await runner.report_short(assignments)
        for _ in range(3):
            await runner.next_assignment()


async def test_rule_11_each_run_of_a_block_counts_in_the_window(make_site: SiteMaker) -> None:
    site = await make_site(max_unacked_reports=4)
    runner = await site.runner()
    refs = [lease_pb2.LeaseRef(task=OLDER, generation=1)]
    with site.taskdb.held_back("CompleteRuns"):
        await runner.send(short_runs=short_runs(refs * 4, 1))
        await runner.send(short_runs=short_runs(refs * 4, 5))
        await runner.heartbeat_acked(await runner.heartbeat())
        await runner.send(short_runs=short_runs(refs, 9))
        assert isinstance(await runner.ended(), errors.WindowExceeded)


async def test_rule_13_the_verdict_on_a_short_run_is_forgotten_with_its_outcome(site: Site) -> None:
    runner = await site.runner(heartbeats=False)
    assignments = await assigned(site, runner, 2)
    with site.taskdb.held_back("RenewSessions"):
        beat = await runner.heartbeat()
        await site.taskdb.called("RenewSessions")
        # The renewal that is under way keeps verdicts that are newer than itself.
        site.taskdb.cancel(assignments[0].lease.task)
        await runner.message("command")
        await runner.acked(await runner.report_short(assignments))
    ack = await runner.heartbeat_acked(beat)
    assert list(ack.verdicts) == []


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"first_seq": 0}, "first_seq"),
        ({"first_seq": 2**63 - 1}, "first_seq"),
        ({"tasks": ["tenants/a/b", OLDER]}, "tasks[0]"),
        ({"tasks": [f"{OLDER}\n{OLDER}", OLDER]}, "tasks[0]"),
        ({"tasks": []}, "tasks"),
        ({"tasks": [OLDER] * 1001}, "tasks"),
        ({"generations": [1, 0]}, "generations[1]"),
        ({"generations": [1]}, "generations"),
        ({"lease_ids": []}, "lease_ids"),
        ({"start_times": [1, 2, 3]}, "start_times"),
        ({"end_times": [1]}, "end_times"),
        ({"exit_codes": [1]}, "exit_codes"),
        ({"results": [b"", deep_result()]}, "results[1]"),
        ({"results": [b"", b"\xff"]}, "results[1]"),
        ({"log_sequences": [1, -1]}, "log_sequences[1]"),
        ({"start_checkpoints": [1]}, "start_checkpoints"),
    ],
)
async def test_rule_07_a_malformed_block_ends_the_stream_with_the_field_named(
    site: Site, columns: dict[str, Any], field: str
) -> None:
    runner = await site.runner()
    refs = [lease_pb2.LeaseRef(task=OLDER, generation=1, lease_id=1)] * 2
    await runner.send(short_runs=short_runs(refs, **columns))
    ended = await runner.ended()
    assert isinstance(ended, errors.FieldInvalid) and f"{field}:" in str(ended)
    assert not site.taskdb.requests("CompleteRuns")


def test_a_block_that_is_too_large_is_refused_before_its_elements_are_looked_at() -> None:
    """Each element that breaks a rule costs 80 µs."""
    runs = lease_pb2.ShortRuns(first_seq=1, tasks=[""] * 20_000, generations=[0] * 20_000)
    start = time.process_time()
    with pytest.raises(errors.FieldInvalid, match="tasks: must have 1 to 1000 elements, not 20000"):
        check_short_runs(runs)
    assert time.process_time() - start < 0.2
