"""Whether any spec is quarantined is asked by every claim.

Deploy: pre.
"""

from alembic import op

revision = "0008"
down_revision = "0007"

# Mostly empty, however many were released.
OPEN = """
CREATE INDEX quarantines_open ON quarantines (tenant_id, task_type) WHERE release_time IS NULL;
"""


def upgrade() -> None:
    op.execute(OPEN)


def downgrade() -> None:
    op.execute("DROP INDEX quarantines_open")
