"""What tenants have used of the runners, for fair shares.

Deploy: pre. What a replica of before this revision ends is not added: it counts as used while it runs only.
"""

from alembic import op

revision = "0006"
down_revision = "0005"

USAGE = """
-- Capacity-seconds of runs that have ended, each worth half after five minutes, as of update_time. What runs now is
-- read from its lease; a run that was given up and comes back is taken off again until it ends.
CREATE TABLE tenant_usage (
    update_time timestamptz NOT NULL,
    usage double precision NOT NULL,
    tenant_id text COLLATE "C" PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
"""


def upgrade() -> None:
    op.execute(USAGE)


def downgrade() -> None:
    op.execute("DROP TABLE tenant_usage")
