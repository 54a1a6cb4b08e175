"""Webhooks, archive, runners and the records of jobs.

Deploy: pre. What is added here holds little (webhooks under way, records, secrets) or is cold (the archive).
"""

from alembic import op

revision = "0004"
down_revision = "0003"

WEBHOOKS = """
-- Calls that are to be made: written in the transaction of the transition, deleted when the receiver has answered.
-- The task is kept as it was then, so that a retry, a deletion or the archive cannot change what is told.
CREATE TABLE webhooks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    create_time timestamptz NOT NULL DEFAULT now(),
    due_time timestamptz NOT NULL DEFAULT now(),
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    last_error text,
    task jsonb NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
CREATE INDEX webhooks_by_task ON webhooks (tenant_id, task_id, id);
CREATE INDEX webhooks_by_due_time ON webhooks (due_time);

-- With what a tenant's webhooks are signed. The former secret signs along for a day after a rotation.
CREATE TABLE webhook_secrets (
    rotate_time timestamptz NOT NULL DEFAULT now(),
    tenant_id text COLLATE "C" PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    secret bytea NOT NULL CHECK (length(secret) >= 24),
    former_secret bytea
);
"""

ARCHIVE = """
-- Ended tasks after their retention, by the month in which they ended: the columns of tasks, in their order.
CREATE TABLE tasks_archive (LIKE tasks) PARTITION BY RANGE (end_time);
ALTER TABLE tasks_archive ALTER COLUMN end_time SET NOT NULL, ADD PRIMARY KEY (tenant_id, task_id, end_time);
CREATE TABLE tasks_archive_default PARTITION OF tasks_archive DEFAULT;

CREATE TABLE runs_archive (LIKE runs) PARTITION BY RANGE (end_time);
ALTER TABLE runs_archive ADD PRIMARY KEY (tenant_id, task_id, generation, end_time);
CREATE TABLE runs_archive_default PARTITION OF runs_archive DEFAULT;
"""

RECORDS = """
-- The last run of each job of housekeeping.
CREATE TABLE job_runs (
    start_time timestamptz NOT NULL,
    end_time timestamptz,
    -- When it last ended well.
    success_time timestamptz,
    item_count bigint NOT NULL DEFAULT 0,
    job text COLLATE "C" PRIMARY KEY,
    error text
);

-- Specs that cost too many runners: by a digest of task type and execution.
CREATE TABLE quarantines (
    create_time timestamptz NOT NULL DEFAULT now(),
    release_time timestamptz,
    runner_loss_count integer NOT NULL CHECK (runner_loss_count >= 0),
    tenant_id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL CHECK (digest ~ '^[a-f0-9]{1,64}$'),
    task_type text COLLATE "C" NOT NULL DEFAULT '',
    example_task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, digest)
);

-- Tasks that were paused because their spec is held back; its release resumes them.
CREATE TABLE quarantine_holds (
    tenant_id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, digest, task_id)
);
"""

RUNNERS = """
-- When the runner that is to be drained held nothing any more.
ALTER TABLE runners ADD COLUMN drained_time timestamptz;
CREATE INDEX runners_by_backend_type ON runners (backend_type) WHERE delete_time IS NULL;
"""

# Rows that come and go are vacuumed early; what is only appended to is frozen and mapped as it grows.
VACUUM = {
    "runners": ("autovacuum_vacuum_scale_factor = 0.05", "autovacuum_vacuum_threshold = 50"),
    "idempotency_keys": (
        "autovacuum_vacuum_scale_factor = 0.05",
        "autovacuum_vacuum_insert_scale_factor = 0.2",
    ),
    "revocations": ("autovacuum_vacuum_scale_factor = 0.05", "autovacuum_vacuum_threshold = 200"),
    "inbox": ("autovacuum_vacuum_scale_factor = 0.02", "autovacuum_vacuum_threshold = 200"),
    "checkpoints": ("autovacuum_vacuum_scale_factor = 0.05", "autovacuum_vacuum_threshold = 200"),
    "tasks": ("autovacuum_vacuum_scale_factor = 0.05", "autovacuum_analyze_scale_factor = 0.05"),
    "runs": ("autovacuum_vacuum_scale_factor = 0.05", "autovacuum_vacuum_insert_scale_factor = 0.1"),
}


def upgrade() -> None:
    for part in (WEBHOOKS, ARCHIVE, RECORDS, RUNNERS):
        op.execute(part)
    for table, settings in VACUUM.items():
        op.execute(f"ALTER TABLE {table} SET ({', '.join(settings)})")


def downgrade() -> None:
    for table, settings in VACUUM.items():
        op.execute(f"ALTER TABLE {table} RESET ({', '.join(name.partition(' ')[0] for name in settings)})")
    op.execute("DROP INDEX runners_by_backend_type")
    op.execute("ALTER TABLE runners DROP COLUMN drained_time")
    for table in [
        "quarantine_holds",
        "quarantines",
        "job_runs",
        "runs_archive",
        "tasks_archive",
        "webhook_secrets",
        "webhooks",
    ]:
        op.execute(f"DROP TABLE {table}")
