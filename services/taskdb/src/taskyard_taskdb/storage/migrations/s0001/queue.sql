-- Claimable tasks. The key is the lane, then its FIFO order; only claims skip locked rows.
CREATE TABLE queue (
    class_id bigint NOT NULL,
    ready_time timestamptz NOT NULL,
    priority smallint NOT NULL,
    -- The task also has an expired lease, which the claim moves to runs.
    has_lease boolean NOT NULL DEFAULT false,
    tenant_id text COLLATE "C" NOT NULL,
    pinned_runner text COLLATE "C" NOT NULL DEFAULT '',
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, class_id, priority, pinned_runner, ready_time, task_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- At most one task of a slot holds it: the head, the only one that may have a queue row.
CREATE TABLE slots (
    tenant_id text COLLATE "C" NOT NULL,
    slot text COLLATE "C" NOT NULL,
    head_task_id text COLLATE "C",
    waiting_count integer NOT NULL DEFAULT 0 CHECK (waiting_count >= 0),
    PRIMARY KEY (tenant_id, slot)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- One row per event that becomes due: 1 a delayed or retried task, 2 queue timeout, 3 total timeout, 4 report of an
-- external task.
CREATE TABLE timers (
    due_time timestamptz NOT NULL,
    kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 4),
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, task_id, kind)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX timers_by_due_time ON timers (due_time);

-- Reports for external tasks, applied per task in the order of id.
CREATE TABLE inbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    create_time timestamptz NOT NULL DEFAULT now(),
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    actor_id text NOT NULL DEFAULT '',
    report bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
CREATE INDEX inbox_by_task ON inbox (tenant_id, task_id, id);

-- Specs that cost too many runners, by a digest of task type and execution. Each claim reads the open ones.
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
CREATE INDEX quarantines_open ON quarantines (tenant_id, task_type) WHERE release_time IS NULL;

-- Tasks that were paused because their spec is quarantined; its release resumes them.
CREATE TABLE quarantine_holds (
    tenant_id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, digest, task_id)
);
