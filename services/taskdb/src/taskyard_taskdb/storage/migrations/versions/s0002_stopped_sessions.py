"""A session remembers that its agent closed it, which tells a stopped runner from a dead one.

Deploy: pre. A taskdb of before neither reads nor writes the column; its sessions count as lost.
"""

from alembic import op

revision = "s0002"
down_revision = "s0001"


def upgrade() -> None:
    op.execute("ALTER TABLE sessions ADD COLUMN stopped boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    op.execute("ALTER TABLE sessions DROP COLUMN stopped")
