"""Webhooks, archive, runners and the records of jobs.

Deploy: pre.
"""

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Nothing yet."""


def downgrade() -> None:
    """Nothing yet."""
