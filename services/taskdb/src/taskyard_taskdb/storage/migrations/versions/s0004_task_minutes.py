"""What happened within each minute, for charts.

Deploy: pre. Code of before folds the log without it: its minutes are missing.
"""

from alembic import op

revision = "s0004"
down_revision = "s0003"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE task_minutes (
            minute timestamptz NOT NULL,
            created bigint NOT NULL,
            started bigint NOT NULL,
            succeeded bigint NOT NULL,
            failed bigint NOT NULL,
            retried bigint NOT NULL,
            waited bigint NOT NULL,
            waited_seconds double precision NOT NULL,
            tenant_id text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant_id, minute)
        ) WITH (fillfactor = 70);
        CREATE INDEX task_minutes_by_minute ON task_minutes (minute);
    """)


def downgrade() -> None:
    op.execute("DROP TABLE task_minutes")
