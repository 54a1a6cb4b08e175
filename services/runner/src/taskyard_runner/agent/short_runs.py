"""Spooled reports of short runs, in columns."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1.lease_pb2 import RunReport, ShortRuns

# Reports of the same shape can be sent in one message; None: as reports.
Shape = tuple[bool, bool] | None


def shape_of(report: RunReport) -> Shape:
    """What a report has of what a block of short runs has for each of its runs or for none."""
    if not report.HasField("start") or not report.HasField("succeeded") or report.HasField("details"):
        return None
    if not report.HasField("start_time") or not report.HasField("time"):
        return None
    succeeded = report.succeeded
    if succeeded.HasField("result") and not succeeded.result.ByteSize():
        # In columns it would be no result.
        return None
    return succeeded.HasField("exit_code"), report.HasField("log_sequence")


def in_columns(reports: Sequence[RunReport]) -> ShortRuns:
    """Consecutive reports of one shape as short runs; the handles of their starts are left out."""
    leases = [report.lease for report in reports]
    starts = [_microseconds(report.start_time) for report in reports]
    ends = [_microseconds(report.time) for report in reports]
    successes = [report.succeeded for report in reports]
    checkpoints = [report.start.checkpoint_sequence for report in reports]
    has_results = any(success.HasField("result") for success in successes)
    has_exit_codes, has_log_sequences = shape_of(reports[0]) or (False, False)
    return ShortRuns(
        first_seq=reports[0].seq,
        tasks=[lease.task for lease in leases],
        generations=[lease.generation for lease in leases],
        lease_ids=[lease.lease_id for lease in leases],
        start_times=starts,
        # The host's clock may have been set back in between.
        end_times=list(map(max, starts, ends)),
        exit_codes=[success.exit_code for success in successes] if has_exit_codes else (),
        results=[success.result.SerializeToString() for success in successes] if has_results else (),
        log_sequences=[report.log_sequence for report in reports] if has_log_sequences else (),
        start_checkpoints=checkpoints if any(checkpoints) else (),
    )


def _microseconds(time: Timestamp) -> int:
    return time.seconds * 1_000_000 + time.nanos // 1000
