"""Jobs of housekeeping are run by one process at a time.

Deploy: pre. A replica of before this revision does not see who runs a job; its pages are guarded all the same.
"""

from alembic import op

revision = "0007"
down_revision = "0006"

RUNS = """
-- `run` grows with every run and guards what it writes; a run without a sign of life was interrupted.
ALTER TABLE job_runs
    ADD COLUMN run bigint NOT NULL DEFAULT 0,
    ADD COLUMN seen_time timestamptz NOT NULL DEFAULT now(),
    -- How often it failed since it last ended well.
    ADD COLUMN failure_count integer NOT NULL DEFAULT 0,
    SET (fillfactor = 50);
"""


def upgrade() -> None:
    op.execute(RUNS)


def downgrade() -> None:
    op.execute("ALTER TABLE job_runs DROP COLUMN run, DROP COLUMN seen_time, DROP COLUMN failure_count")
