"""The outcome of a run whose function, or whose host, has ended."""

from __future__ import annotations

from typing import Any

from taskyard.v1.common_pb2 import ERROR_CLASS_TRANSIENT
from taskyard.v1.lease_pb2 import RELEASE_REASON_LOST, RELEASE_REASON_WAITING, RunReport
from taskyard_runner.agent import outcome
from taskyard_runner.agent.function_host import FunctionRun
from taskyard_runner.executors import function
from taskyard_runner.warden.deadline import StopReason
from taskyard_runner.warden.protocol import Message


def ended(run: FunctionRun, answer: dict[str, Any] | None) -> RunReport | None:
    """The outcome of a function that ended: its own, unless it answered a stop."""
    if run.reason == StopReason.ABORT:
        return None
    if answer is not None and "waiting" in answer:
        report = outcome.released(RELEASE_REASON_WAITING, "it waits for children")
        report.released.wait_for.extend(answer["waiting"])
        return report
    if answer is not None and "stopped" in answer:
        reason = run.reason or StopReason.SHUTDOWN
        return outcome.judge({"stop_reason": reason}, run.directory)
    return function.report_of(answer)


def lost(run: FunctionRun, result: Message, *, is_culprit: bool) -> RunReport | None:
    """The outcome of a run whose host ended."""
    if run.reason == StopReason.ABORT:
        return None
    if not is_culprit:
        message = "its function host was ended because of another run"
        return outcome.released(RELEASE_REASON_LOST, message)
    if not result.get("stop_reason") and outcome.exit_code(result) == 0:
        message = "the function ended its process"
        return outcome.failed(ERROR_CLASS_TRANSIENT, "HOST_EXITED", message)
    return outcome.judge(result, run.directory)
