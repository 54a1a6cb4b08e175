"""What tenants have used of the runners, for fair shares.

Deploy: pre. A leader of before this revision does not keep it: shares are then as if nobody had used anything.
"""

from alembic import op

revision = "0006"
down_revision = "0005"

USAGE = """
-- Capacity-seconds used up to sample_time, each worth half after five minutes, and the leases held then.
CREATE TABLE tenant_usage (
    sample_time timestamptz NOT NULL,
    usage double precision NOT NULL DEFAULT 0 CHECK (usage >= 0),
    held bigint NOT NULL CHECK (held >= 0),
    tenant_id text COLLATE "C" PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
"""


def upgrade() -> None:
    op.execute(USAGE)


def downgrade() -> None:
    op.execute("DROP TABLE tenant_usage")
