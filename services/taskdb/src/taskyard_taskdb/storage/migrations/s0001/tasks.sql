-- What a lane of the queue requires of a runner.
CREATE TABLE placement_classes (
    tenant_id text COLLATE "C" NOT NULL,
    class_id bigint NOT NULL,
    definition bytea NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, class_id)
);

-- A task that is pending, paused or ended is described by this row alone. While a lease exists, the lease row carries
-- phase, version, generation and attempt, and this row keeps the values from before the claim. Columns that change come
-- before those that do not: the write-ahead log of an update on the same page then holds the first part only.
--
-- PostgreSQL updates a row without new index entries (HOT) only if no column of any index, of its expressions or of its
-- predicate changes, on any row. So an index of some tasks uses a generated column that stays null in the others: the
-- outcome of a task that was queued at once changes none of them. A batch that ends together was created together and
-- lies on the same pages: the fillfactor leaves room for a second, larger version of all its rows.
CREATE TABLE tasks (
    version integer NOT NULL DEFAULT 1,
    generation integer NOT NULL DEFAULT 0,
    update_time timestamptz NOT NULL,
    ready_time timestamptz,
    next_attempt_time timestamptz,
    schedule_time timestamptz,
    start_time timestamptz,
    end_time timestamptz,
    -- The delay before the current attempt, which decorrelated jitter builds on.
    retry_delay interval,
    -- The first run, if it was a plain success: with the other columns, all that a row of `runs` would hold.
    run_lease_id bigint,
    run_start_checkpoint bigint,
    run_log_sequence bigint,
    checkpoint_sequence bigint NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    retry_count integer NOT NULL DEFAULT 0 CONSTRAINT retry_count_not_negative CHECK (retry_count >= 0),
    runner_loss_count integer NOT NULL DEFAULT 0,
    exit_code integer,
    phase smallint NOT NULL CONSTRAINT task_phase CHECK (phase IN (1, 2, 3, 4, 5, 10, 11, 12, 13, 14)),
    pending_reason smallint NOT NULL DEFAULT 0,
    last_runner_id text COLLATE "C",
    error_code text COLLATE "C",
    -- Serialised messages of the contract, here and below: storage never parses them.
    result bytea,
    error bytea,
    progress bytea,
    details bytea,
    class_id bigint NOT NULL,
    create_time timestamptz NOT NULL,
    total_deadline timestamptz,
    -- Null where task_id is its text.
    uid uuid,
    task_type_revision integer NOT NULL DEFAULT 0,
    max_retries integer NOT NULL CONSTRAINT max_retries_not_negative CHECK (max_retries >= 0),
    kind smallint NOT NULL CONSTRAINT task_kind CHECK (kind BETWEEN 1 AND 6),
    priority smallint NOT NULL CONSTRAINT task_priority CHECK (priority BETWEEN 0 AND 1000),
    creator_type smallint NOT NULL,
    -- The parts of `policy` that a claim or a plain outcome reads.
    restart smallint NOT NULL DEFAULT 2,
    overlap smallint NOT NULL DEFAULT 2,
    on_runner_lost smallint NOT NULL DEFAULT 1,
    -- It may have a queue or total timeout in `timers`.
    timed boolean NOT NULL DEFAULT false,
    -- Its success is one guarded statement: nothing but lease, timers, slot and this row has to change.
    plain boolean NOT NULL GENERATED ALWAYS AS (callback IS NULL AND restart <> 3) STORED,
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL DEFAULT '',
    task_type_tenant text COLLATE "C",
    pinned_runner text COLLATE "C" NOT NULL DEFAULT '',
    slot text COLLATE "C",
    entity_type text COLLATE "C",
    entity_id text COLLATE "C",
    parent_task_id text COLLATE "C",
    creator_id text NOT NULL DEFAULT '',
    traceparent text,
    spec bytea NOT NULL,
    -- Retries and timeouts that differ from their defaults, as JSON; null where none does.
    policy bytea,
    callback bytea,
    annotations bytea,
    labels jsonb,
    -- The slot of a live task that is not queued. A queued task heads its slot, which the row of the slot records.
    live_slot text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN end_time IS NULL AND NOT (phase = 1 AND pending_reason = 1)
        THEN slot END) STORED,
    -- When a live task was created that is not queued for the first time. The others are in `queue`, with that time as
    -- their ready_time, or in `leases`.
    held_time timestamptz GENERATED ALWAYS AS (CASE WHEN end_time IS NULL AND NOT (phase = 1 AND pending_reason = 1
        AND ready_time IS NOT NULL AND ready_time = create_time) THEN create_time END) STORED,
    -- How a task ended that did not succeed.
    failed_phase smallint GENERATED ALWAYS AS (CASE WHEN phase > 10 THEN phase END) STORED,
    CONSTRAINT ended_task_has_end_time CHECK ((phase >= 10) = (end_time IS NOT NULL)),
    CONSTRAINT failed_task_has_error CHECK (phase NOT IN (11, 12, 14) OR error IS NOT NULL),
    CONSTRAINT retries_within_maximum CHECK (retry_count <= max_retries),
    CONSTRAINT entity_is_whole CHECK ((entity_type IS NULL) = (entity_id IS NULL)),
    CONSTRAINT only_success_keeps_its_run CHECK (run_lease_id IS NULL OR phase = 10)
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX tasks_by_creation ON tasks (tenant_id, create_time);
CREATE INDEX tasks_held ON tasks (tenant_id, held_time) WHERE held_time IS NOT NULL;
CREATE INDEX tasks_failed ON tasks (tenant_id, failed_phase, create_time) WHERE failed_phase IS NOT NULL;
-- For ranges of end times. Tasks that were created together mostly end together. Since PostgreSQL 16 a BRIN index does
-- not prevent HOT updates.
CREATE INDEX tasks_by_end ON tasks USING brin (end_time) WITH (pages_per_range = 64, autosummarize = on);
CREATE INDEX tasks_by_type ON tasks (tenant_id, task_type, create_time) WHERE task_type <> '';
CREATE INDEX tasks_by_entity ON tasks (tenant_id, entity_type, entity_id, create_time) WHERE entity_type IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (tenant_id, parent_task_id, create_time) WHERE parent_task_id IS NOT NULL;
CREATE INDEX tasks_by_labels ON tasks USING gin (labels jsonb_path_ops) WHERE labels IS NOT NULL;
CREATE INDEX tasks_of_slot ON tasks (tenant_id, slot, create_time) WHERE slot IS NOT NULL;
-- Waiters of a slot in the order in which they are promoted.
CREATE INDEX tasks_by_slot ON tasks (tenant_id, live_slot, priority DESC, create_time, task_id)
    WHERE live_slot IS NOT NULL;
-- The last index: while the table is empty, every index that begins with the tenant seems equally good for a look-up by
-- key, and PostgreSQL takes the youngest. Generic plans made then are kept until the table is analysed.
ALTER TABLE tasks ADD PRIMARY KEY (tenant_id, task_id);

-- Requests that were applied, so that a repeat returns the same task.
CREATE TABLE idempotency_keys (
    create_time timestamptz NOT NULL DEFAULT now(),
    method smallint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL CHECK (length(request_id) <= 64),
    task_id text COLLATE "C" NOT NULL,
    body_hash bytea NOT NULL,
    PRIMARY KEY (tenant_id, method, request_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (create_time);

-- State that runs saved to resume from. `data` is stored out of line and uncompressed.
CREATE TABLE checkpoints (
    sequence bigint NOT NULL CHECK (sequence >= 1),
    generation bigint NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now(),
    size_bytes integer NOT NULL CHECK (size_bytes BETWEEN 1 AND 10485760),
    progress_percent smallint NOT NULL DEFAULT 0 CHECK (progress_percent BETWEEN 0 AND 100),
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    content_type text NOT NULL DEFAULT '',
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    data bytea NOT NULL,
    PRIMARY KEY (tenant_id, task_id, sequence)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE checkpoints ALTER COLUMN data SET STORAGE EXTERNAL;
