"""A function that claims tasks in one exchange.

Deploy: pre. Code of before does not call it.
"""

from pathlib import Path

from alembic import op

revision = "s0012"
down_revision = "s0011"


def upgrade() -> None:
    op.execute((Path(__file__).parents[1] / revision / "claim_tasks_v1.sql").read_text())


def downgrade() -> None:
    op.execute("DROP FUNCTION claim_tasks_v1")
