"""A function that completes short runs in one exchange.

Deploy: pre. Code of before does not call it.
"""

from pathlib import Path

from alembic import op

revision = "s0014"
down_revision = "s0013"


def upgrade() -> None:
    op.execute((Path(__file__).parents[1] / revision / "complete_runs_v1.sql").read_text())


def downgrade() -> None:
    op.execute("DROP FUNCTION complete_runs_v1")
