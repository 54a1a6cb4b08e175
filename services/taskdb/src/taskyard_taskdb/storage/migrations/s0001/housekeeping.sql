-- Leadership of the housekeeping, and other state that replicas share.
CREATE TABLE coordinator_state (
    key text COLLATE "C" PRIMARY KEY CHECK (length(key) <= 64),
    value text NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    expires_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Facts about this database: the epoch of the change log, the restore epoch.
CREATE TABLE facts (
    key text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

-- The last run of each housekeeping job. `run` grows with every run and guards what the run writes; a run whose seen_time
-- is old was interrupted.
CREATE TABLE job_runs (
    start_time timestamptz NOT NULL,
    end_time timestamptz,
    -- When the job last succeeded.
    success_time timestamptz,
    item_count bigint NOT NULL DEFAULT 0,
    job text COLLATE "C" PRIMARY KEY,
    error text,
    run bigint NOT NULL DEFAULT 0,
    seen_time timestamptz NOT NULL DEFAULT now(),
    -- Failures since the job last succeeded.
    failure_count integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Webhook requests to send: written in the transaction of the transition, deleted when the receiver has answered. `task`
-- is the task as it was then, so that a retry, a deletion or the archive cannot change the request.
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

-- The secrets that sign a tenant's webhooks. The former secret also signs for a day after a rotation.
CREATE TABLE webhook_secrets (
    rotate_time timestamptz NOT NULL DEFAULT now(),
    tenant_id text COLLATE "C" PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    secret bytea NOT NULL CHECK (length(secret) >= 24),
    former_secret bytea
);

-- Ended tasks after their retention, by the month in which they ended: the columns of tasks, in their order.
CREATE TABLE tasks_archive (
    version integer NOT NULL,
    generation integer NOT NULL,
    update_time timestamptz NOT NULL,
    ready_time timestamptz,
    next_attempt_time timestamptz,
    schedule_time timestamptz,
    start_time timestamptz,
    end_time timestamptz NOT NULL,
    retry_delay interval,
    run_lease_id bigint,
    run_start_checkpoint bigint,
    run_log_sequence bigint,
    checkpoint_sequence bigint NOT NULL,
    attempt integer NOT NULL,
    retry_count integer NOT NULL,
    runner_loss_count integer NOT NULL,
    exit_code integer,
    phase smallint NOT NULL,
    pending_reason smallint NOT NULL,
    last_runner_id text COLLATE "C",
    error_code text COLLATE "C",
    result bytea,
    error bytea,
    progress bytea,
    details bytea,
    class_id bigint NOT NULL,
    create_time timestamptz NOT NULL,
    total_deadline timestamptz,
    uid uuid,
    task_type_revision integer NOT NULL,
    max_retries integer NOT NULL,
    kind smallint NOT NULL,
    priority smallint NOT NULL,
    creator_type smallint NOT NULL,
    restart smallint NOT NULL,
    overlap smallint NOT NULL,
    on_runner_lost smallint NOT NULL,
    timed boolean NOT NULL,
    plain boolean NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL,
    task_type_tenant text COLLATE "C",
    pinned_runner text COLLATE "C" NOT NULL,
    slot text COLLATE "C",
    entity_type text COLLATE "C",
    entity_id text COLLATE "C",
    parent_task_id text COLLATE "C",
    creator_id text NOT NULL,
    traceparent text,
    spec bytea NOT NULL,
    policy bytea,
    callback bytea,
    annotations bytea,
    labels jsonb,
    live_slot text COLLATE "C",
    held_time timestamptz,
    failed_phase smallint,
    PRIMARY KEY (tenant_id, task_id, end_time)
) PARTITION BY RANGE (end_time);
CREATE TABLE tasks_archive_default PARTITION OF tasks_archive DEFAULT;

-- The runs of archived tasks: the columns of runs, in their order.
CREATE TABLE runs_archive (
    generation bigint NOT NULL,
    lease_id bigint NOT NULL,
    schedule_time timestamptz NOT NULL,
    start_time timestamptz,
    end_time timestamptz NOT NULL,
    task_type_revision bigint NOT NULL,
    start_checkpoint bigint NOT NULL,
    log_sequence bigint,
    attempt integer NOT NULL,
    exit_code integer,
    state smallint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    runner_id text COLLATE "C" NOT NULL,
    error bytea,
    progress bytea,
    PRIMARY KEY (tenant_id, task_id, generation, end_time)
) PARTITION BY RANGE (end_time);
CREATE TABLE runs_archive_default PARTITION OF runs_archive DEFAULT;
