"""Outcomes of runs that never began: their preparation failed, or a stop came first."""

from __future__ import annotations

from taskyard.v1.common_pb2 import ERROR_CLASS_PERMANENT, ERROR_CLASS_TRANSIENT
from taskyard.v1.lease_pb2 import (
    RELEASE_REASON_DRAINED,
    RELEASE_REASON_PAUSED,
    RELEASE_REASON_UNSUPPORTED,
    RunCancelled,
    RunReport,
)
from taskyard_runner.agent import outcome
from taskyard_runner.agent.preparation import CheckpointUnavailable
from taskyard_runner.executors import NotRunnable, Unsupported
from taskyard_runner.warden.deadline import StopReason


def stopped(reason: StopReason) -> RunReport:
    """The outcome of a run stopped before its start."""
    if reason == StopReason.CANCEL:
        return RunReport(cancelled=RunCancelled())
    if reason == StopReason.PAUSE:
        return outcome.released(RELEASE_REASON_PAUSED, "paused before it was started")
    return outcome.released(RELEASE_REASON_DRAINED, "the runner is draining")


def unprepared(error: Unsupported | NotRunnable | CheckpointUnavailable | OSError) -> RunReport:
    """Why a run could not be got ready."""
    if isinstance(error, Unsupported):
        return outcome.released(RELEASE_REASON_UNSUPPORTED, str(error))
    if isinstance(error, NotRunnable):
        return outcome.failed(ERROR_CLASS_PERMANENT, "START_FAILED", str(error))
    if isinstance(error, CheckpointUnavailable):
        return outcome.failed(ERROR_CLASS_TRANSIENT, "CHECKPOINT_UNAVAILABLE", str(error))
    return outcome.start_failed("prepare", error.errno or 0, f"{error.filename}: {error.strerror}")
