"""Functions of an application, through a real runner and its hosts."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

from services.runner.tests.function_calls import APP, call, dropped, kinds, output, reported
from services.runner.tests.runner_process import Gate, RunnerProcess, function, variables
from services.runner.tests.scheduler_peer import SchedulerPeer, checkpoint_of
from taskyard.v1.common_pb2 import ERROR_CLASS_PERMANENT, ERROR_CLASS_TRANSIENT
from taskyard.v1.lease_pb2 import (
    LEASE_ACTION_ABORT,
    LEASE_ACTION_CANCEL,
    LEASE_ACTION_PAUSE,
    RELEASE_REASON_LOST,
    RELEASE_REASON_PAUSED,
    RELEASE_REASON_UNSUPPORTED,
)
from taskyard.v1.log_pb2 import LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_SOURCE_STDERR, LOG_SOURCE_STDOUT
from taskyard.v1.runner_pb2 import EXECUTION_KIND_FUNCTION
from taskyard_runner.executors.function import report_of

StartRunner = Callable[..., Awaitable[RunnerProcess]]


@pytest.fixture
async def runner(start_runner: StartRunner) -> RunnerProcess:
    return await start_runner(*APP)


async def test_the_app_is_advertised_and_nothing_else(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    registration = peer.session.hello.registration
    assert list(registration.execution_kinds) == [EXECUTION_KIND_FUNCTION]
    assert {"add", "add-sync", "fail"} <= set(registration.functions)
    assert (registration.capacity, registration.prefetch) == (10, 40)


@pytest.mark.parametrize("name", ["add", "add-sync"])
async def test_a_short_run_reports_its_start_and_outcome_together(
    peer: SchedulerPeer, runner: RunnerProcess, name: str
) -> None:
    task = peer.assign(function(name, {"a": 2, "b": 3}))
    assert output(await peer.outcome(task)) == 5
    assert kinds(peer, task) == ["started", "succeeded"]
    (report,) = peer.reports[task.key]
    assert report.HasField("start_time") and report.log_sequence == 0


async def test_context_describes_the_run(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    spec = function("echo", {"x": "ü"}, env=variables(A="1"))
    task = peer.assign(spec, labels={"team": "red"})
    result = output(await peer.outcome(task))
    assert isinstance(result, dict)
    lease = task.assignment.lease
    assert result.pop("pid") in runner.host_pids()
    assert result == {
        "payload": {"x": "ü"},
        "attempt": 1,
        "fence": f"1.{lease.lease_id}",
        "task": lease.task,
        "env": {"A": "1"},
        "labels": {"team": "red"},
        "grpc": False,
    }


@pytest.mark.seed("S0.7", "S1.5", "S2.22")
async def test_context_names_entity_budget_interval_and_scheduled_time(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    spec = function("describe")
    spec.entity.type, spec.entity.id, spec.max_steps = "planner", "p-1", 30
    spec.checkpoint_interval.FromSeconds(300)
    spec.not_before.FromJsonString("2026-01-02T03:04:05Z")
    assert output(await peer.outcome(peer.assign(spec))) == {
        "entity": ["planner", "p-1"],
        "max_steps": 30,
        "checkpoint_interval": 300.0,
        "scheduled_time": "2026-01-02T03:04:05+00:00",
    }
    assert output(await peer.outcome(peer.assign(function("describe")))) == {
        "entity": None,
        "max_steps": None,
        "checkpoint_interval": 0.0,
        "scheduled_time": None,
    }


@pytest.mark.seed("S0.15-16", "S0.56-58")
@pytest.mark.parametrize("value", [None, {"solved": True}])
async def test_a_function_reports_metrics_beside_its_output(
    peer: SchedulerPeer, runner: RunnerProcess, value: object
) -> None:
    task = peer.assign(function("measure", {"output": value}))
    result = (await peer.outcome(task)).succeeded.result
    assert dict(result.metrics) == {"accuracy": 0.93, "steps": 3}
    assert json.loads(result.output.raw or b"null") == value
    (entry,) = await peer.lines(task, 1)
    assert (entry.message, entry.step, entry.action) == ("solved", 2, "submit")
    assert dict(entry.details) == {"why": "done"}


def test_metrics_that_a_result_cannot_have_are_left_out() -> None:
    """The host runs code of users, which may answer in its place."""
    metrics = {"good": 0.5, "nan": math.nan, "deep": [[1]], "text": "x", "a\0b": 1}
    report = report_of({"text": "1", "type": "application/json", "metrics": metrics})
    assert dict(report.succeeded.result.metrics) == {"good": 0.5}


async def test_a_checkpoint_carries_the_progress_that_was_reported_before_it(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    """The request for the second checkpoint must not overtake the progress of its caller."""
    task = peer.assign(function("progress-and-keep"))
    await peer.outcome(task)
    header, _ = peer.checkpoints[task.key[0]]
    assert (header.sequence, header.progress_percent) == (2, 100)
    assert reported(peer, task)[-1] == 100


async def test_bytes_arrive_as_bytes(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    spec = function("echo")
    spec.payload.raw, spec.payload.content_type = b"\xff\x00", "application/octet-stream"
    result = output(await peer.outcome(peer.assign(spec)))
    assert isinstance(result, dict) and result["payload"] == "ff00"


@pytest.mark.parametrize(
    ("how", "error_class", "code", "message"),
    [
        ("transient", ERROR_CLASS_TRANSIENT, "SLOW_DISK", "Transient: the disk is slow"),
        ("permanent", ERROR_CLASS_PERMANENT, "BAD_INPUT", "Permanent: no such table"),
        ("listed", ERROR_CLASS_PERMANENT, "EXCEPTION", "KeyError: 'listed'"),
        ("plain", ERROR_CLASS_TRANSIENT, "EXCEPTION", "ValueError: plain"),
        ("exit", ERROR_CLASS_TRANSIENT, "EXCEPTION", "SystemExit: 4"),
    ],
)
async def test_exceptions_become_classed_errors(
    peer: SchedulerPeer, runner: RunnerProcess, how: str, error_class: int, code: str, message: str
) -> None:
    task = peer.assign(function("fail", {"how": how}))
    report = await peer.outcome(task)
    error = report.failed.error
    assert (error.error_class, error.code, error.message) == (error_class, code, message)
    assert report.failed.retry_after.seconds == (7 if how == "transient" else 0)
    (trace,) = await peer.lines(task, 1)
    assert trace.level == LOG_LEVEL_ERROR and "function_app.py" in trace.message
    # The caller gets the same: from the function on, without the frames of the host.
    assert error.details["traceback"] == trace.message and "host.py" not in trace.message
    assert error.details["exception"] == message.partition(":")[0]


async def test_a_payload_that_does_not_fit_is_refused_by_field(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    for payload, message in (
        ({"a": "x"}, "payload.a 'x' is not an integer"),
        ({}, "payload.a is missing; send it"),
        ({"a": 1, "c": 2}, "payload.c is unknown; the function takes a, b"),
        ([1], "payload [1] is no JSON object; send the fields by name"),
    ):
        error = (await peer.outcome(peer.assign(function("add", payload)))).failed.error
        assert (error.error_class, error.code) == (ERROR_CLASS_PERMANENT, "INVALID_PAYLOAD")
        assert error.message == f"InvalidPayload: {message}"


async def test_results_that_cannot_be_stored_fail_for_good(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    error = (await peer.outcome(peer.assign(function("large", {"size": 1 << 20})))).failed.error
    assert (error.error_class, error.code) == (ERROR_CLASS_PERMANENT, "RESULT_TOO_LARGE")
    error = (await peer.outcome(peer.assign(function("unserialisable")))).failed.error
    assert (error.error_class, error.code) == (ERROR_CLASS_PERMANENT, "INVALID_RESULT")
    assert await call(peer, "large", {"size": 1000}) == "x" * 1000


async def test_unregistered_function_is_released(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    report = await peer.outcome(peer.assign(function("no-such")))
    assert report.released.reason == RELEASE_REASON_UNSUPPORTED


async def test_output_logging_and_progress_belong_to_the_run(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(function("talk"))
    assert (await peer.outcome(task)).log_sequence == 5
    entries = {entry.message: entry for entry in await peer.lines(task, 5)}
    assert list(entries) == ["printed", "to stderr", "logged 1", "context log", "unfinished"]
    assert entries["printed"].source == LOG_SOURCE_STDOUT
    assert entries["to stderr"].source == LOG_SOURCE_STDERR
    assert entries["logged 1"].level == LOG_LEVEL_WARNING
    assert entries["logged 1"].details["logger"] == "mine"
    assert (entries["context log"].level, entries["context log"].details["extra"]) == (LOG_LEVEL_ERROR, "x")
    report = await peer.report(task, "progress")
    assert (report.progress.percent, report.progress.message) == (60, "half")
    assert kinds(peer, task)[-1] == "succeeded"


async def test_output_of_functions_that_share_a_host_is_not_mixed_up(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    tasks = {n: peer.assign(function("talk-async", {"name": f"n{n}"})) for n in range(5)}
    for n, task in tasks.items():
        await peer.outcome(task)
        assert [entry.message for entry in await peer.lines(task, 3)] == [f"n{n} {k}" for k in range(3)]


@pytest.mark.parametrize("name", ["obedient", "sleep-async"])
async def test_a_cancelled_function_that_obeys_ends_at_once(
    peer: SchedulerPeer, runner: RunnerProcess, name: str
) -> None:
    task = peer.assign(function(name))
    await peer.line(task, "ready")
    peer.send_verdict(task, LEASE_ACTION_CANCEL)
    assert (await peer.outcome(task)).WhichOneof("report") == "cancelled"
    assert kinds(peer, task)[0] == "started"
    assert await call(peer, "add-sync", {"a": 1}) == 2


async def test_a_plain_function_that_does_not_obey_is_killed_after_its_grace_period(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(function("block"))
    await peer.line(task, "ready")
    hosts = set(runner.host_pids())
    peer.send_verdict(task, LEASE_ACTION_CANCEL, grace=0.2)
    assert (await peer.outcome(task)).WhichOneof("report") == "cancelled"
    assert len(hosts - set(runner.host_pids())) == 1


async def test_an_async_function_that_does_not_obey_costs_its_neighbours_no_attempt(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    stubborn = peer.assign(function("stubborn-async"))
    neighbour = peer.assign(function("sleep-async"))
    await peer.line(stubborn, "ready")
    await peer.line(neighbour, "ready")
    peer.send_verdict(stubborn, LEASE_ACTION_CANCEL, grace=0.2)
    assert (await peer.outcome(stubborn)).WhichOneof("report") == "cancelled"
    report = await peer.outcome(neighbour)
    assert report.released.reason == RELEASE_REASON_LOST
    assert await call(peer, "add", {"a": 1}) == 2


@pytest.mark.parametrize("name", ["block", "sleep-async"])
@pytest.mark.parametrize(
    ("field", "code"), [("attempt_timeout", "ATTEMPT_TIMEOUT"), ("silence_timeout", "SILENCE_TIMEOUT")]
)
async def test_timeouts_end_functions(
    peer: SchedulerPeer, runner: RunnerProcess, name: str, field: str, code: str
) -> None:
    limits = {field: Duration(nanos=300_000_000), "stop_grace_period": Duration(nanos=100_000_000)}
    task = peer.assign(function(name, **limits))
    report = await peer.outcome(task)
    assert report.timed_out.code == code


@pytest.mark.parametrize("name", ["count", "count-async"])
async def test_paused_function_resumes_from_its_checkpoint(
    peer: SchedulerPeer, runner: RunnerProcess, name: str
) -> None:
    task = peer.assign(function(name))
    await peer.line(task, "ready")
    peer.send_verdict(task, LEASE_ACTION_PAUSE)
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_PAUSED
    header, content = peer.checkpoints[task.assignment.lease.task]
    assert (header.sequence, content) == (1, b"1")
    again = peer.task(
        function(name),
        generation=2,
        name=task.assignment.lease.task,
        checkpoint=checkpoint_of(header),
    )
    peer.send(again)
    assert output(await peer.outcome(again)) == 1
    assert (await peer.report(again, "started")).started.checkpoint_sequence == 1


async def test_a_success_that_came_before_the_stop_stays(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    task = peer.assign(function("wait", {"gate": str(gate)}))
    await peer.report(task, "started")
    peer.send_verdict(task, LEASE_ACTION_CANCEL, grace=20)
    gate.open()
    assert output(await peer.outcome(task)) == "through"


async def test_aborted_function_reports_nothing(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    for name in ("block", "sleep-async"):
        task = peer.assign(function(name))
        await peer.line(task, "ready")
        peer.send_verdict(task, LEASE_ACTION_ABORT, reason="STALE_GENERATION")
        await dropped(peer, task)
        assert set(kinds(peer, task)) <= {"started"}
