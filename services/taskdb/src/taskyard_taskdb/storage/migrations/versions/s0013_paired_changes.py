"""Ids of changes in steps of two: a row may stand for a start and the success that came with it.

Deploy: pre. Code of before shows such a row as the success alone, and waits for open transactions before it passes
over the ids that are not drawn. ALTER SEQUENCE waits for the transactions that have drawn an id.
"""

from alembic import op

revision = "s0013"
down_revision = "s0012"


def upgrade() -> None:
    op.execute("ALTER SEQUENCE changes_id INCREMENT BY 2")


def downgrade() -> None:
    op.execute("ALTER SEQUENCE changes_id INCREMENT BY 1")
