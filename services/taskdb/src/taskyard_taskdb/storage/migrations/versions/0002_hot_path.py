"""What the hot path writes, made smaller.

Deploy: pre.
"""

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Nothing yet."""


def downgrade() -> None:
    """Nothing yet."""
