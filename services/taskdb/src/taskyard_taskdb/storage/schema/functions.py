"""The functions by which one exchange with the server does what several statements do."""

from __future__ import annotations

from importlib import resources

from taskyard_taskdb.storage.schema.base import at_the_end

at_the_end(
    (
        "Claims tasks for runners with sessions in one exchange; primary keys of sessions, runners, queue, "
        "tasks; leases_by_runner, quarantines_open. Each of its statements has a snapshot younger than the "
        "locks of those before it. The name carries the version: code of before an upgrade calls the version "
        "that it was written for. The lanes of one bundle are compared by ready_time less their offsets; "
        "without lane_pages every bundle has one lane. Seats number the wanted tasks over all bundles, and "
        "each of seat_claims has those from its seat_starts on. Returns the claimed tasks in order, then the "
        "lanes that had rows: whether a lane has no more, the last ready_time that was chosen and the first "
        "that was passed over. A row whose lane is 0 or negative says that nothing was claimed and that the "
        "statements have to decide; a negative one names a lane whose tenant is counted or has quarantined "
        "specs."
    ),
    (resources.files(__package__) / "claim_tasks_v1.sql").read_text(),
)

at_the_end(
    (
        "Completes runs whose start came with their success, as complete_plain does, in one exchange; primary"
        " keys of leases, tasks, tenant_counters, runners, runner_counts. Element n of each array belongs to "
        "run n; task_ids are joined by slashes, and a null array has no values. The runs are in key order. "
        "Returns the numbers of those that it left as they are, for the lifecycle to decide; by tenant how "
        "many it completed and how long those ran together, by the holder's clock and at most as long as they"
        " were leased; and the tenants whose counters changed. The name carries the version."
    ),
    (resources.files(__package__) / "complete_runs_v1.sql").read_text(),
)
