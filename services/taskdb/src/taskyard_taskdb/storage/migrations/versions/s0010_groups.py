"""Groups of tasks.

Deploy: pre. The column has no default, so that no row is rewritten; code of before stores no groups.
"""

from alembic import op

revision = "s0010"
down_revision = "s0009"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE tasks ADD COLUMN group_id text COLLATE "C";
        ALTER TABLE tasks_archive ADD COLUMN group_id text COLLATE "C";
        CREATE INDEX tasks_by_group ON tasks (tenant_id, group_id, create_time, task_id) WHERE group_id IS NOT NULL;
        CREATE TABLE groups (
            live_count bigint NOT NULL DEFAULT 0,
            succeeded_count bigint NOT NULL DEFAULT 0,
            not_succeeded_count bigint NOT NULL DEFAULT 0,
            completion_count integer NOT NULL DEFAULT 0,
            close_time timestamptz,
            complete_time timestamptz,
            cancel_time timestamptz,
            cancel_after_time timestamptz,
            cancelling boolean NOT NULL DEFAULT false,
            awaited boolean NOT NULL DEFAULT false,
            create_time timestamptz NOT NULL DEFAULT now(),
            uid uuid NOT NULL DEFAULT gen_random_uuid(),
            cancel_actor_type smallint,
            tenant_id text COLLATE "C" NOT NULL,
            group_id text COLLATE "C" NOT NULL,
            parent_task_id text COLLATE "C",
            cancel_after_id text COLLATE "C",
            cancel_actor_id text,
            cancel_reason text,
            callback bytea,
            PRIMARY KEY (tenant_id, group_id)
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
        CREATE INDEX groups_ended ON groups (tenant_id, group_id)
            WHERE close_time IS NOT NULL AND complete_time IS NULL AND live_count = 0;
        CREATE INDEX groups_cancelling ON groups (tenant_id, group_id) WHERE cancelling;
        CREATE TABLE group_deltas (
            id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
            live integer NOT NULL,
            succeeded integer NOT NULL,
            not_succeeded integer NOT NULL,
            closes boolean,
            tenant_id text COLLATE "C" NOT NULL,
            group_id text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant_id, group_id, id)
        ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
    """)


def downgrade() -> None:
    op.execute("DROP TABLE group_deltas, groups")
    op.execute("ALTER TABLE tasks DROP COLUMN group_id")
    op.execute("ALTER TABLE tasks_archive DROP COLUMN group_id")
