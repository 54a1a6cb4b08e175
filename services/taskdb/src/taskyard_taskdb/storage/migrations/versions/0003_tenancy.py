"""Task types with their revisions, the counters of limited tenants, and the lengths that names may have.

Deploy: pre. A replica of before this revision does not count: while both serve, counters may be off, and the
recount of RunDoctor puts them right.
"""

from alembic import op

revision = "0003"
down_revision = "0002"

TASK_TYPES = """
-- The newest revision of each type. What queries and other services ask for stands in columns; all of it, as the
-- contract's message, in `definition`.
CREATE TABLE task_types (
    revision bigint NOT NULL DEFAULT 1 CONSTRAINT task_type_revision CHECK (revision >= 1),
    version bigint NOT NULL DEFAULT 1,
    create_time timestamptz NOT NULL DEFAULT now(),
    update_time timestamptz NOT NULL DEFAULT now(),
    -- How long ended tasks are kept: null takes the default.
    retention interval CONSTRAINT task_type_retention CHECK (retention >= interval '0'),
    attempt_timeout interval CONSTRAINT task_type_timeout CHECK (attempt_timeout > interval '0'),
    checkpoint_interval interval CONSTRAINT task_type_checkpoints CHECK (checkpoint_interval >= interval '0'),
    max_retries integer CONSTRAINT task_type_retries CHECK (max_retries >= 0),
    archive boolean NOT NULL DEFAULT false,
    disabled boolean NOT NULL DEFAULT false,
    queue_paused boolean NOT NULL DEFAULT false,
    -- Results are checked against a schema, or were in an earlier revision.
    checks_result boolean NOT NULL DEFAULT false,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants ON DELETE CASCADE,
    task_type text COLLATE "C" NOT NULL CONSTRAINT task_type_id CHECK (length(task_type) BETWEEN 1 AND 128),
    runner_id_pattern text NOT NULL DEFAULT '',
    description text NOT NULL DEFAULT '',
    definition bytea NOT NULL,
    PRIMARY KEY (tenant_id, task_type)
);
CREATE INDEX task_types_by_type ON task_types (task_type);
CREATE INDEX task_types_checking ON task_types (tenant_id) WHERE checks_result;
CREATE INDEX task_types_paused ON task_types (tenant_id, task_type) WHERE queue_paused;

-- Every revision there was: a run names the one whose configuration it got.
CREATE TABLE task_type_revisions (
    revision bigint NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now(),
    tenant_id text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL,
    definition bytea NOT NULL,
    PRIMARY KEY (tenant_id, task_type, revision),
    FOREIGN KEY (tenant_id, task_type) REFERENCES task_types ON DELETE CASCADE
);
"""

COUNTERS = """
-- One row per tenant with a limit, none for the others; the limits in force stand beside what they limit, so that
-- whoever has locked the row knows both. Every writer of tasks also opens this table for writing, which holds off the
-- table lock under which a row begins.
CREATE TABLE tenant_counters (
    pending bigint NOT NULL DEFAULT 0,
    leased bigint NOT NULL DEFAULT 0,
    tokens double precision NOT NULL DEFAULT 0,
    refill_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    max_concurrent_tasks integer NOT NULL CHECK (max_concurrent_tasks >= 0),
    max_queue_depth integer NOT NULL CHECK (max_queue_depth >= 0),
    rate_limit_per_sec integer NOT NULL CHECK (rate_limit_per_sec >= 0),
    rate_burst integer NOT NULL CHECK (rate_burst >= 0),
    tenant_id text COLLATE "C" PRIMARY KEY REFERENCES tenants ON DELETE CASCADE
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
"""

# Tenants that were limited before there were counters.
COUNT = """
WITH tier (tier, concurrent, queued, rate, burst) AS (
    VALUES (1, 10, 50, 1, 5), (2, 100, 500, 10, 50), (3, 500, 2000, 50, 200), (4, 2000, 10000, 200, 1000)
), quota AS (
    SELECT t.tenant_id, coalesce(t.max_concurrent_tasks, tier.concurrent) AS concurrent,
        coalesce(t.max_queue_depth, tier.queued) AS queued, coalesce(t.rate_limit_per_sec, tier.rate) AS rate,
        coalesce(t.rate_burst, tier.burst) AS burst
    FROM tenants t JOIN tier USING (tier)
)
INSERT INTO tenant_counters (tenant_id, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, tokens,
    pending, leased)
SELECT q.tenant_id, concurrent, queued, rate, burst, burst,
    (SELECT count(*) FROM tasks t WHERE t.tenant_id = q.tenant_id AND t.end_time IS NULL AND t.phase = 1
        AND NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = t.tenant_id AND l.task_id = t.task_id)),
    (SELECT count(*) FROM leases l WHERE l.tenant_id = q.tenant_id)
FROM quota q
WHERE concurrent > 0 OR queued > 0 OR rate > 0
"""

NAMES = """
ALTER TABLE tenants
    ADD CONSTRAINT tenant_id_length CHECK (length(tenant_id) BETWEEN 1 AND 64),
    ADD CONSTRAINT tenant_display_name_length CHECK (length(display_name) <= 255);
"""


def upgrade() -> None:
    for part in (NAMES, TASK_TYPES, COUNTERS, COUNT):
        op.execute(part)


def downgrade() -> None:
    op.execute("DROP TABLE tenant_counters, task_type_revisions, task_types")
    op.execute(
        "ALTER TABLE tenants DROP CONSTRAINT tenant_id_length, DROP CONSTRAINT tenant_display_name_length"
    )
