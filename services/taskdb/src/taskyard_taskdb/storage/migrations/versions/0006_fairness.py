"""What tenants have used, for fair shares and quarantine.

Deploy: pre.
"""

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Nothing yet."""


def downgrade() -> None:
    """Nothing yet."""
