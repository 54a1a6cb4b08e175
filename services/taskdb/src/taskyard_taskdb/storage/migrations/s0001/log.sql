-- Ids are drawn under the shared advisory lock of the log.
CREATE SEQUENCE changes_id CACHE 1;

-- One log for watches and audit. A column without a value is null, which costs a bit; readers use the view change_log.
CREATE TABLE changes (
    id bigint NOT NULL DEFAULT nextval('changes_id'),
    time timestamptz NOT NULL,
    version integer NOT NULL DEFAULT 0,
    generation integer,
    next_attempt_time timestamptz,
    attempt integer,
    retry_count integer,
    runner_loss_count integer,
    exit_code integer,
    -- 1 task, 2 runner, 3 tenant, 4 task type, 5 API key, 6 quarantine
    resource_kind smallint NOT NULL DEFAULT 1,
    event smallint NOT NULL,
    actor_type smallint NOT NULL,
    phase smallint NOT NULL DEFAULT 0,
    previous_phase smallint,
    pending_reason smallint,
    tenant_id text COLLATE "C" NOT NULL,
    resource_id text COLLATE "C" NOT NULL,
    actor_id text NOT NULL DEFAULT '',
    runner_id text,
    error_code text,
    request_id text,
    details jsonb
) PARTITION BY RANGE (time);
CREATE TABLE changes_default PARTITION OF changes DEFAULT;
-- Not BRIN: the reader of the log asks for the newest rows, which BRIN has not summarised yet.
CREATE INDEX changes_by_id ON changes (id);
CREATE INDEX changes_by_time ON changes USING brin (time) WITH (pages_per_range = 16);
-- One index answers by resource, tenant, actor and event together, for less than a byte of log per change.
CREATE INDEX changes_audit ON changes USING brin (id int8_minmax_ops, resource_id text_bloom_ops,
    tenant_id text_bloom_ops, actor_id text_bloom_ops, event int2_bloom_ops)
    WITH (pages_per_range = 16, autosummarize = on);

-- The log as it is read: a number without a value is zero.
CREATE VIEW change_log AS
SELECT id, time, version, coalesce(generation, 0) AS generation, next_attempt_time,
    coalesce(attempt, 0) AS attempt, coalesce(retry_count, 0) AS retry_count,
    coalesce(runner_loss_count, 0) AS runner_loss_count, exit_code, resource_kind, event, actor_type, phase,
    coalesce(previous_phase, 0::smallint) AS previous_phase,
    coalesce(pending_reason, 0::smallint) AS pending_reason,
    tenant_id, resource_id, actor_id, runner_id, error_code, request_id, details
FROM changes;

-- One row per batch of consecutive entries of a run, serialised as it was sent.
CREATE TABLE logs (
    time timestamptz NOT NULL,
    last_time timestamptz NOT NULL,
    generation bigint NOT NULL,
    first_sequence bigint NOT NULL,
    last_sequence bigint NOT NULL,
    dropped_count bigint NOT NULL DEFAULT 0,
    max_level smallint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    entries bytea NOT NULL
) PARTITION BY RANGE (time);
CREATE TABLE logs_default PARTITION OF logs DEFAULT;
CREATE INDEX logs_by_task ON logs (tenant_id, task_id, generation, first_sequence);

-- A chain over the change log: each seal covers every change above the former one's id, up to its own.
CREATE TABLE seals (
    last_id bigint PRIMARY KEY,
    after_id bigint NOT NULL UNIQUE,
    change_count bigint NOT NULL CHECK (change_count > 0),
    first_time timestamptz NOT NULL,
    last_time timestamptz NOT NULL,
    seal_time timestamptz NOT NULL DEFAULT now(),
    -- How the rows were turned into bytes.
    form smallint NOT NULL,
    previous_hash bytea NOT NULL CHECK (length(previous_hash) = 32),
    hash bytea NOT NULL CHECK (length(hash) = 32),
    CONSTRAINT seal_covers_ids CHECK (after_id < last_id)
);

-- Tasks by quarter of an hour of their creation, type and phase, folded from the change log.
CREATE TABLE task_counts (
    quarter timestamptz NOT NULL,
    phase smallint NOT NULL,
    task_count bigint NOT NULL,
    retry_count bigint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, quarter, task_type, phase)
) WITH (fillfactor = 70);
CREATE INDEX task_counts_by_quarter ON task_counts (quarter);

-- Their durations: 1 from start to end of a success, 2 from creation to start; a step is a quarter of a power of two
-- of milliseconds.
CREATE TABLE task_durations (
    quarter timestamptz NOT NULL,
    kind smallint NOT NULL,
    step smallint NOT NULL,
    task_count bigint NOT NULL,
    seconds double precision NOT NULL,
    longest double precision NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, quarter, task_type, kind, step)
) WITH (fillfactor = 70);
CREATE INDEX task_durations_by_quarter ON task_durations (quarter);

-- The one row holds the id up to which the log is folded into task_counts and task_durations.
CREATE TABLE task_stats_place (
    last_id bigint NOT NULL,
    fold_time timestamptz NOT NULL
);
CREATE UNIQUE INDEX task_stats_place_is_one ON task_stats_place ((true));
