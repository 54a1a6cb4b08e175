"""Schedules.

Deploy: pre. Code of before neither reads nor writes the new tables.
"""

from alembic import op

revision = "s0008"
down_revision = "s0007"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE schedules (
            next_fire_time timestamptz,
            next_scheduled_time timestamptz,
            skip_until timestamptz,
            last_scheduled_time timestamptz,
            version bigint NOT NULL DEFAULT 1,
            create_time timestamptz NOT NULL DEFAULT now(),
            update_time timestamptz NOT NULL DEFAULT now(),
            fired_count bigint NOT NULL DEFAULT 0,
            skipped_count bigint NOT NULL DEFAULT 0,
            missed_count bigint NOT NULL DEFAULT 0,
            remaining_runs bigint CONSTRAINT schedule_remaining_runs CHECK (remaining_runs >= 0),
            uid uuid NOT NULL,
            paused boolean NOT NULL DEFAULT false,
            pause_on_failure boolean NOT NULL DEFAULT false,
            tenant_id text COLLATE "C" NOT NULL REFERENCES tenants ON DELETE CASCADE,
            schedule_id text COLLATE "C" NOT NULL
                CONSTRAINT schedule_id CHECK (length(schedule_id) BETWEEN 1 AND 55),
            last_task_id text COLLATE "C",
            pause_note text NOT NULL DEFAULT '',
            definition bytea NOT NULL,
            PRIMARY KEY (tenant_id, schedule_id),
            CONSTRAINT schedule_cursor CHECK ((next_fire_time IS NULL) = (next_scheduled_time IS NULL))
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
        CREATE INDEX schedules_due ON schedules (next_fire_time) WHERE next_fire_time IS NOT NULL;
        CREATE TABLE schedule_tasks (
            tenant_id text COLLATE "C" NOT NULL,
            schedule_id text COLLATE "C" NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant_id, schedule_id, task_id),
            FOREIGN KEY (tenant_id, schedule_id) REFERENCES schedules ON DELETE CASCADE
        );
    """)


def downgrade() -> None:
    op.execute("DROP TABLE schedule_tasks")
    op.execute("DROP TABLE schedules")
