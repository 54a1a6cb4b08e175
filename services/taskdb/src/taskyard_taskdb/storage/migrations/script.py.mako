"""${message}.

Deploy: pre or post; say which, and what old code sees in between.
"""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "op.execute(\"\"\"\"\"\")"}


def downgrade() -> None:
    ${downgrades if downgrades else "op.execute(\"\"\"\"\"\")"}
