"""The limit of the bytes that a tenant stores.

Deploy: pre. The column has no default, so that no row is rewritten.
"""

from alembic import op

revision = "s0005"
down_revision = "s0004"


def upgrade() -> None:
    op.execute("ALTER TABLE tenants ADD COLUMN max_storage_bytes bigint CHECK (max_storage_bytes >= 0)")


def downgrade() -> None:
    op.execute("ALTER TABLE tenants DROP COLUMN max_storage_bytes")
