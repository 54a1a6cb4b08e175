"""The last heartbeat of a session whose successor was missed.

Deploy: pre. The column has no default, so that no row is rewritten.
"""

from alembic import op

revision = "s0006"
down_revision = "s0005"


def upgrade() -> None:
    op.execute("ALTER TABLE sessions ADD COLUMN missed_after timestamptz")


def downgrade() -> None:
    op.execute("ALTER TABLE sessions DROP COLUMN missed_after")
