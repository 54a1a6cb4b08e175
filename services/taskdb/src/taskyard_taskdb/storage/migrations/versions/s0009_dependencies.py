"""Dependencies between tasks.

Deploy: pre. The columns have no default, so that no row is rewritten; code of before stores no dependencies.
"""

from alembic import op

revision = "s0009"
down_revision = "s0008"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE tasks ADD COLUMN blocked boolean, ADD COLUMN has_dependents boolean;
        ALTER TABLE tasks_archive ADD COLUMN blocked boolean, ADD COLUMN has_dependents boolean;
        CREATE TABLE dependencies (
            condition smallint NOT NULL CHECK (condition BETWEEN 1 AND 3),
            position smallint NOT NULL,
            open boolean NOT NULL,
            tenant_id text COLLATE "C" NOT NULL,
            prerequisite_id text COLLATE "C" NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            alias text COLLATE "C",
            PRIMARY KEY (tenant_id, prerequisite_id, task_id)
        ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
        CREATE INDEX dependencies_of_task ON dependencies (tenant_id, task_id, position);
        CREATE INDEX dependencies_open ON dependencies (tenant_id, prerequisite_id, task_id) WHERE open;
        CREATE TABLE blocked_tasks (
            open_count integer NOT NULL CONSTRAINT open_count_not_negative CHECK (open_count >= 0),
            failed_phase smallint,
            tenant_id text COLLATE "C" NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            failed_task_id text COLLATE "C",
            PRIMARY KEY (tenant_id, task_id),
            CONSTRAINT failed_prerequisite_is_whole CHECK ((failed_task_id IS NULL) = (failed_phase IS NULL))
        ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
        CREATE INDEX blocked_tasks_settled ON blocked_tasks (tenant_id, task_id)
            WHERE open_count = 0 OR failed_task_id IS NOT NULL;
        CREATE TABLE dependency_backlog (
            create_time timestamptz NOT NULL DEFAULT clock_timestamp(),
            kind smallint NOT NULL CHECK (kind IN (1, 2)),
            phase smallint NOT NULL,
            after_id text COLLATE "C" NOT NULL DEFAULT '',
            tenant_id text COLLATE "C" NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant_id, task_id, kind)
        ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
    """)


def downgrade() -> None:
    op.execute("DROP TABLE dependency_backlog, blocked_tasks, dependencies")
    op.execute("ALTER TABLE tasks DROP COLUMN blocked, DROP COLUMN has_dependents")
    op.execute("ALTER TABLE tasks_archive DROP COLUMN blocked, DROP COLUMN has_dependents")
