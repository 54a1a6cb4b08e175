"""From the end of a process to the report about the run: what counts as success, and which failures may pass.

| end                                                      | report                    | class     |
|----------------------------------------------------------|---------------------------|-----------|
| exit code 0                                              | succeeded                 |           |
| exit code 64, 65, 77, 78 (usage, data, permission, config) | failed EXIT_NONZERO     | permanent |
| any other exit code                                      | failed EXIT_NONZERO       | transient |
| killed by a signal that the runner did not send          | failed KILLED_BY_SIGNAL   | transient |
| a process of the run killed for the memory limit         | failed OUT_OF_MEMORY      | transient |
| exit code other than 0 after a refused process           | failed OUT_OF_PROCESSES   | transient |
| not started: program, directory, script or argument bad  | failed START_FAILED       | permanent |
| not started: the host had no processes, memory or disk   | failed START_FAILED       | transient |
| the run's directory larger than its disk_mb              | failed DISK_LIMIT_REACHED | transient |
| result larger than 1 MiB                                 | failed RESULT_TOO_LARGE   | permanent |
| stopped at a timeout                                     | timed_out                 |           |
| stopped by cancel, pause, drain                          | cancelled, released       |           |
| stopped because the lease ended                          | released LOST             |           |

A workload that fails may choose class, code, message and retry_after itself, in TASKYARD_ERROR_FILE.
"""

from __future__ import annotations

import errno
import json
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf.duration_pb2 import Duration

from taskyard.v1.common_pb2 import (
    ERROR_CLASS_PERMANENT,
    ERROR_CLASS_TRANSIENT,
    ErrorClass,
    Payload,
    TaskError,
)
from taskyard.v1.lease_pb2 import (
    RELEASE_REASON_DRAINED,
    RELEASE_REASON_LOST,
    RELEASE_REASON_PAUSED,
    ReleaseReason,
    RunCancelled,
    RunFailed,
    RunReleased,
    RunReport,
    RunSucceeded,
    RunTimedOut,
)
from taskyard.v1.task_pb2 import TaskResult
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.files import read_regular
from taskyard_runner.warden.deadline import StopReason

MAX_RESULT_BYTES = 1 << 20
_MAX_ERROR_BYTES = 65536
_MAX_RETRY_AFTER = 86400
_MAX_METRICS_BYTES = 65536
# Above it a double is infinite; NaN is not below it either.
_MAX_METRIC = 1.8e308

# Of sysexits.h: errors that a retry with the same input and host repeats.
PERMANENT_EXIT_CODES = frozenset((64, 65, 77, 78))
# The description is wrong, not the moment.
PERMANENT_ERRNOS = frozenset(
    (
        0,
        errno.ENOENT,
        errno.EACCES,
        errno.EPERM,
        errno.ENOEXEC,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.E2BIG,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EINVAL,
    )
)
_TIMEOUTS = {
    StopReason.ATTEMPT_TIMEOUT: "ATTEMPT_TIMEOUT",
    StopReason.SILENCE_TIMEOUT: "SILENCE_TIMEOUT",
    StopReason.TOTAL_TIMEOUT: "TOTAL_TIMEOUT",
}
_RELEASES: dict[StopReason, tuple[ReleaseReason.ValueType, str]] = {
    StopReason.PAUSE: (RELEASE_REASON_PAUSED, "paused"),
    StopReason.DRAIN: (RELEASE_REASON_DRAINED, "the runner is draining"),
    StopReason.SHUTDOWN: (RELEASE_REASON_LOST, "the runner shut down"),
    StopReason.LEASE_EXPIRED: (RELEASE_REASON_LOST, "stopped because its lease had ended"),
}
_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,61}[A-Z0-9]")


def judge(result: Mapping[str, Any], files: RunDirectory, owner: int | None = None) -> RunReport | None:
    """The report about an ended run, without lease; None if nothing is to be reported (ABORT)."""
    reason = StopReason(result["stop_reason"]) if result.get("stop_reason") else None
    if result.get("start_error"):
        return start_failed(*result["start_error"], own_user=owner is not None)
    code = exit_code(result)
    if reason == StopReason.ABORT:
        return None
    if reason == StopReason.CANCEL:
        return RunReport(cancelled=RunCancelled(exit_code=code))
    if reason in _TIMEOUTS:
        return RunReport(timed_out=RunTimedOut(code=_TIMEOUTS[reason], exit_code=code))
    if reason == StopReason.DISK_FULL:
        message = "the files of the task take up more than its disk_mb"
        return failed(ERROR_CLASS_TRANSIENT, "DISK_LIMIT_REACHED", message)
    if reason in _RELEASES:
        return released(*_RELEASES[reason])
    if code == 0:
        return _succeeded(result, files, owner)
    return _failed(result, code, files.error, owner)


def exit_code(result: Mapping[str, Any]) -> int | None:
    """128 + n after signal n; None if there was no process."""
    if result.get("signal"):
        return 128 + int(result["signal"])
    return result.get("exit_code")


def failed(error_class: ErrorClass.ValueType, code: str, message: str) -> RunReport:
    """A failure that the runner found itself."""
    error = TaskError(error_class=error_class, code=code, message=cut(message))
    return RunReport(failed=RunFailed(error=error))


def released(reason: ReleaseReason.ValueType, message: str) -> RunReport:
    """The report of a released run."""
    return RunReport(released=RunReleased(reason=reason, message=cut(message, 4096)))


def start_failed(step: str, number: int, detail: str, *, own_user: bool = False) -> RunReport:
    """The process could not be started."""
    lasting = number in PERMANENT_ERRNOS and step not in ("prepare", "cgroup", "descriptors")
    errno_name = errno.errorcode.get(number, "")
    denied = own_user and number in (errno.EACCES, errno.EPERM)
    hint = "; here each task has a user of its own, see the runner's --sandbox" if denied else ""
    return failed(
        ERROR_CLASS_PERMANENT if lasting else ERROR_CLASS_TRANSIENT,
        "START_FAILED",
        f"the process could not be started: {step}: {detail}{f' ({errno_name})' if errno_name else ''}{hint}",
    )


def _succeeded(result: Mapping[str, Any], files: RunDirectory, owner: int | None) -> RunReport:
    try:
        output = read_output(files.result, owner)
    except ValueError as error:
        return failed(ERROR_CLASS_PERMANENT, "RESULT_TOO_LARGE", str(error))
    except OSError as error:
        return failed(ERROR_CLASS_PERMANENT, "RESULT_UNREADABLE", f"TASKYARD_RESULT_FILE: {error.strerror}")
    task_result = TaskResult(output=output)
    measured = {name: result.get(name, 0) for name in ("cpu_seconds", "max_rss_bytes")}
    task_result.metrics.update({**measured, **read_metrics(files.metrics, owner)})
    return RunReport(succeeded=RunSucceeded(result=task_result, exit_code=0))


def read_output(path: Path, owner: int | None = None) -> Payload | None:
    """The workload's result file, None if there is none. Raises ValueError above the limit, OSError."""
    content = read_regular(path, MAX_RESULT_BYTES + 1, owner)
    if content is None:
        return None
    if len(content) > MAX_RESULT_BYTES:
        raise ValueError(
            f"the result is larger than {MAX_RESULT_BYTES} bytes; store it elsewhere and name it"
        )
    return Payload(raw=content, content_type=_content_type(content))


def read_metrics(path: Path, owner: int | None = None) -> dict[str, float]:
    """The finite numbers of the workload's metrics file, a JSON object; empty if it is none."""
    try:
        content = read_regular(path, _MAX_METRICS_BYTES, owner)
        found = json.loads(content) if content else {}
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if is_metric(name, value)}


def is_metric(name: str, value: Any) -> bool:
    """Whether it can be a number of the result."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_METRIC
    return number and "\0" not in name


def _content_type(content: bytes) -> str:
    try:
        json.loads(content.decode())
    except UnicodeDecodeError:
        return "application/octet-stream"
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return "application/json"


def _failed(result: Mapping[str, Any], code: int | None, error_file: Path, owner: int | None) -> RunReport:
    report = _classify(result, code)
    if code is not None:
        report.failed.exit_code = code
    _apply_own_error(report.failed, error_file, owner)
    return report


def _classify(result: Mapping[str, Any], code: int | None) -> RunReport:
    tail = str(result.get("stderr_tail", "")).strip()
    ending = f"\n{tail}" if tail else ""
    if result.get("out_of_memory"):
        message = "a process of the task was killed because the task reached its memory limit"
        return failed(ERROR_CLASS_TRANSIENT, "OUT_OF_MEMORY", message + ending)
    if result.get("out_of_processes"):
        message = "the task reached the limit of its processes, see the runner's --pids-limit"
        return failed(ERROR_CLASS_TRANSIENT, "OUT_OF_PROCESSES", message + ending)
    if number := result.get("signal"):
        hint = " (a file reached the size limit)" if number == signal.SIGXFSZ else ""
        name = _signal_name(int(number))
        return failed(ERROR_CLASS_TRANSIENT, "KILLED_BY_SIGNAL", f"killed by {name}{hint}{ending}")
    lasting = ERROR_CLASS_PERMANENT if code in PERMANENT_EXIT_CODES else ERROR_CLASS_TRANSIENT
    return failed(lasting, "EXIT_NONZERO", f"exit code {code}{ending}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _apply_own_error(report: RunFailed, error_file: Path, owner: int | None) -> None:
    """The workload's error file takes precedence over its exit code."""
    try:
        content = read_regular(error_file, _MAX_ERROR_BYTES, owner)
        error = json.loads(content) if content else {}
    except (OSError, ValueError, RecursionError):
        return
    if not isinstance(error, dict):
        return
    if error.get("class") in ("transient", "permanent"):
        report.error.error_class = (
            ERROR_CLASS_PERMANENT if error["class"] == "permanent" else ERROR_CLASS_TRANSIENT
        )
    if isinstance(error.get("code"), str) and _CODE.fullmatch(error["code"]):
        report.error.code = error["code"]
    if isinstance(error.get("message"), str):
        report.error.message = cut(error["message"])
    after = error.get("retry_after")
    if isinstance(after, int | float) and 0 <= after <= _MAX_RETRY_AFTER:
        report.retry_after.CopyFrom(Duration(seconds=int(after), nanos=int(after % 1 * 1e9)))


def cut(text: str, limit: int = _MAX_ERROR_BYTES) -> str:
    """Text for a report: bounded, and without NUL characters, which the database rejects."""
    clean = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return clean.encode(errors="replace")[:limit].decode(errors="ignore")
