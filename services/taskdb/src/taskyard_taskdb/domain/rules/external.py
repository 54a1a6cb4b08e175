"""Rows for tasks whose owner does the work and reports it: no queue, no lease, forward only."""

from taskyard_taskdb.domain.change import ChangeEvent as Word
from taskyard_taskdb.domain.draft import Draft
from taskyard_taskdb.domain.event import Event, ExternalReported, ReportTimeoutPassed
from taskyard_taskdb.domain.row import Guard, Row, again
from taskyard_taskdb.domain.rules.common import in_phases
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.transition import ClearTimer, SetTimer
from taskyard_taskdb.domain.words import ErrorClass, PendingReason, Phase, TimerKind

PENDING = in_phases(Phase.PENDING)
RUNNING = in_phases(Phase.RUNNING)
ENDED = in_phases(Phase.SUCCEEDED, Phase.FAILED)
UNNAMED = RunError("EXTERNAL_FAILURE", ErrorClass.PERMANENT, "the owner reported FAILED without an error")
SILENT = RunError("SILENCE_TIMEOUT", ErrorClass.TRANSIENT, "no report of its owner within report_timeout")


def reports(*phases: Phase | None) -> Guard:
    """The task is external and the report names one of these phases."""
    return lambda draft, event: draft.task.external and event.phase in phases


def informs(draft: Draft, event: ExternalReported) -> bool:
    """Whether a report that leaves the phase unchanged has content."""
    same = event.phase is None or event.phase is draft.task.phase
    informed = event.details is not None or event.progress is not None
    return draft.task.external and same and informed


def repeats(draft: Draft, event: ExternalReported) -> bool:
    """Whether the report names the phase that the task has."""
    live = not draft.task.phase.terminal
    return draft.task.external and (event.phase is draft.task.phase or (live and event.phase is None))


def await_report(draft: Draft) -> None:
    """The next report is due in report_timeout."""
    timeout = draft.task.policy.report_timeout
    if timeout is not None and draft.task.phase is Phase.RUNNING:
        draft.emit(SetTimer(TimerKind.REPORT_TIMEOUT, draft.now + timeout))


def take(draft: Draft, event: ExternalReported) -> None:
    """Stores progress and details that came with a report."""
    task = draft.task
    details = task.details if event.details is None else event.details
    draft.set(details=details, progress=event.progress or task.progress)


def start(draft: Draft, event: ExternalReported) -> None:
    """PENDING -> RUNNING."""
    take(draft, event)
    draft.set(
        phase=Phase.RUNNING,
        pending_reason=PendingReason.NONE,
        attempt=draft.task.attempt + 1,
        start_time=draft.now,
    )
    await_report(draft)


def inform(draft: Draft, event: ExternalReported) -> None:
    """Another sign of the owner."""
    take(draft, event)
    await_report(draft)


def sign(draft: Draft, event: ExternalReported) -> None:
    """A sign without news."""
    await_report(draft)


def succeed(draft: Draft, event: ExternalReported) -> None:
    """RUNNING -> SUCCEEDED."""
    take(draft, event)
    draft.finish(Phase.SUCCEEDED, draft.now)
    draft.set(result=event.result, error=None)


def fail(draft: Draft, event: ExternalReported) -> None:
    """RUNNING -> FAILED."""
    take(draft, event)
    draft.finish(Phase.FAILED, draft.now, event.error or UNNAMED)


def silent(draft: Draft, event: Event) -> bool:
    """Whether the timer still means something; every report moves it."""
    return draft.task.external and draft.task.policy.report_timeout is not None


def time_out(draft: Draft, event: Event) -> None:
    """The owner has stopped reporting."""
    draft.finish(Phase.TIMED_OUT, draft.now, SILENT)


def drop(draft: Draft, event: Event) -> None:
    """The timer no longer applies."""
    draft.emit(ClearTimer(TimerKind.REPORT_TIMEOUT))


ROWS = (
    Row(
        "external_start", (ExternalReported,), PENDING, Phase.RUNNING,
        Word.TASK_STARTED, "O", "external: RUNNING reported; attempt + 1", reports(Phase.RUNNING), start,
    ),
    Row(
        "external_start_implied", (ExternalReported,), PENDING, Phase.RUNNING,
        Word.TASK_STARTED, "O", "external: an end was reported without a start; then as from RUNNING",
        reports(Phase.SUCCEEDED, Phase.FAILED), start, again,
    ),
    Row(
        "external_progress", (ExternalReported,), PENDING | RUNNING, None,
        Word.TASK_PROGRESS_UPDATED, "O", "external: progress or details reported", informs, inform,
    ),
    Row(
        "external_repeated", (ExternalReported,), PENDING | RUNNING | ENDED, None,
        None, "O", "external: the phase is so already", repeats, sign,
    ),
    Row(
        "external_succeed", (ExternalReported,), RUNNING, Phase.SUCCEEDED,
        Word.TASK_SUCCEEDED, "O", "external: SUCCEEDED reported", reports(Phase.SUCCEEDED), succeed,
    ),
    Row(
        "external_fail", (ExternalReported,), RUNNING, Phase.FAILED,
        Word.TASK_FAILED, "O", "external: FAILED reported", reports(Phase.FAILED), fail,
    ),
    Row(
        "report_timeout", (ReportTimeoutPassed,), RUNNING, Phase.TIMED_OUT,
        Word.TASK_TIMED_OUT, "T", "external: no report for report_timeout", silent, time_out,
    ),
    Row(
        "report_timeout_stale", (ReportTimeoutPassed,), frozenset(Phase), None,
        None, "T", "it does not wait for a report: the timer goes", act=drop,
    ),
)  # fmt: skip
