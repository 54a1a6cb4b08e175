"""The failpoints of taskdb: the steps at which a test can kill, stop or delay the process."""

from taskyard_kit import failpoint

CREATE_BEFORE_COMMIT = failpoint.declare("create.before_commit")
# The tasks have leases that their schedulers do not know of.
CREATE_BEFORE_PUSH = failpoint.declare("create.before_push")
CREATE_AFTER_COMMIT = failpoint.declare("create.after_commit")
CREATE_AFTER_REPLY = failpoint.declare("create.after_reply")
CLAIM_AFTER_COMMIT = failpoint.declare("claim.after_commit")
REPORT_BEFORE_COMMIT = failpoint.declare("report.before_commit")
REPORT_AFTER_COMMIT = failpoint.declare("report.after_commit")
CHECKPOINT_BEFORE_COMMIT = failpoint.declare("checkpoint.before_commit")
CHECKPOINT_AFTER_COMMIT = failpoint.declare("checkpoint.after_commit")
CANCEL_AFTER_COMMIT = failpoint.declare("cancel.after_commit")
TIMER_BEFORE_COMMIT = failpoint.declare("timer.before_commit")
SWEEP_BETWEEN_SELECT_AND_UPDATE = failpoint.declare("sweep.between_select_and_update")
LEADER_BEFORE_WRITE = failpoint.declare("leader.before_write")
SCHEDULE_BEFORE_COMMIT = failpoint.declare("schedule.before_commit")
GROUP_BEFORE_COMMIT = failpoint.declare("group.before_commit")
GROUP_AFTER_COMMIT = failpoint.declare("group.after_commit")
