"""Core tables: tenants, keys, tasks, queue, leases, slots, sessions, runs, changes, logs, checkpoints.

Deploy: pre. Everything is keyed by tenant first. Live work (queue, leases, slots, timers, sessions)
sits in small tables of its own; what is finished (runs, changes, logs) is only ever appended to.
"""

from alembic import op

revision = "0001"
down_revision = None

TENANTS = """
CREATE TABLE tenants (
    tenant_id text COLLATE "C" PRIMARY KEY,
    display_name text NOT NULL,
    tier smallint NOT NULL CONSTRAINT tenant_tier CHECK (tier BETWEEN 1 AND 4),
    -- Overrides of the tier's quota: null takes the tier's value, 0 is unlimited.
    max_concurrent_tasks integer CHECK (max_concurrent_tasks >= 0),
    max_queue_depth integer CHECK (max_queue_depth >= 0),
    rate_limit_per_sec integer CHECK (rate_limit_per_sec >= 0),
    rate_burst integer CHECK (rate_burst >= 0),
    weight integer CHECK (weight BETWEEN 1 AND 1000),
    suspended boolean NOT NULL DEFAULT false,
    queue_paused boolean NOT NULL DEFAULT false,
    version bigint NOT NULL DEFAULT 1,
    create_time timestamptz NOT NULL DEFAULT now(),
    update_time timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tenants_by_tier ON tenants (tier);

CREATE TABLE api_keys (
    key_id text COLLATE "C" PRIMARY KEY,
    kind smallint NOT NULL CONSTRAINT api_key_kind CHECK (kind BETWEEN 1 AND 4),
    tenant_id text COLLATE "C" REFERENCES tenants ON DELETE CASCADE,
    secret_hash bytea NOT NULL,
    read_only boolean NOT NULL DEFAULT false,
    runner_scope jsonb,
    description text NOT NULL DEFAULT '',
    create_time timestamptz NOT NULL DEFAULT now(),
    expire_time timestamptz,
    revoke_time timestamptz,
    CONSTRAINT tenant_key_has_tenant CHECK ((kind = 1) = (tenant_id IS NOT NULL))
);
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_id) WHERE tenant_id IS NOT NULL;
"""

TASKS = """
CREATE TABLE placement_classes (
    tenant_id text COLLATE "C" NOT NULL,
    class_id bigint NOT NULL,
    definition bytea NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, class_id)
);

-- What is waiting, paused or ended is described by this row alone. While a lease exists, the lease
-- row carries phase, version, generation and attempt, and this row keeps those from before the claim.
-- What changes stands before what does not: of an update on its page the log then holds the first part only.
CREATE TABLE tasks (
    version bigint NOT NULL DEFAULT 1,
    generation bigint NOT NULL DEFAULT 0,
    update_time timestamptz NOT NULL,
    ready_time timestamptz,
    next_attempt_time timestamptz,
    schedule_time timestamptz,
    start_time timestamptz,
    end_time timestamptz,
    -- The delay before the current attempt, which decorrelated jitter builds on.
    retry_delay interval,
    checkpoint_sequence bigint NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    retry_count integer NOT NULL DEFAULT 0 CONSTRAINT retry_count_not_negative CHECK (retry_count >= 0),
    runner_loss_count integer NOT NULL DEFAULT 0,
    exit_code integer,
    phase smallint NOT NULL CONSTRAINT task_phase CHECK (phase IN (1, 2, 3, 4, 5, 10, 11, 12, 13, 14)),
    pending_reason smallint NOT NULL DEFAULT 0,
    last_runner_id text COLLATE "C",
    error_code text COLLATE "C",
    -- Serialised messages of the contract, here and below: storage never looks inside.
    result bytea,
    error bytea,
    progress bytea,
    details bytea,
    class_id bigint NOT NULL,
    create_time timestamptz NOT NULL,
    total_deadline timestamptz,
    task_type_revision bigint NOT NULL DEFAULT 0,
    uid uuid NOT NULL,
    max_retries integer NOT NULL CONSTRAINT max_retries_not_negative CHECK (max_retries >= 0),
    kind smallint NOT NULL CONSTRAINT task_kind CHECK (kind BETWEEN 1 AND 6),
    priority smallint NOT NULL CONSTRAINT task_priority CHECK (priority BETWEEN 0 AND 1000),
    creator_type smallint NOT NULL,
    -- What a claim or a plain outcome has to know of the policy, which is in `policy` as a whole.
    restart smallint NOT NULL DEFAULT 2,
    overlap smallint NOT NULL DEFAULT 2,
    on_runner_lost smallint NOT NULL DEFAULT 1,
    -- It may have a queue or total timeout in `timers`.
    timed boolean NOT NULL DEFAULT false,
    -- Its success is one guarded statement: nothing but lease, run, timers and this row has to change.
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
    PRIMARY KEY (tenant_id, task_id),
    CONSTRAINT ended_task_has_end_time CHECK ((phase >= 10) = (end_time IS NOT NULL)),
    CONSTRAINT failed_task_has_error CHECK (phase NOT IN (11, 12, 14) OR error IS NOT NULL),
    CONSTRAINT retries_within_maximum CHECK (retry_count <= max_retries),
    CONSTRAINT entity_is_whole CHECK ((entity_type IS NULL) = (entity_id IS NULL))
) WITH (fillfactor = 85);
-- Live and ended tasks are apart, so that a create writes one of them and a list of live tasks skips the ended ones.
CREATE INDEX tasks_live ON tasks (tenant_id, create_time) WHERE end_time IS NULL;
CREATE INDEX tasks_ended_by_creation ON tasks (tenant_id, create_time) WHERE end_time IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (tenant_id, phase, end_time) WHERE end_time IS NOT NULL;
CREATE INDEX tasks_by_type ON tasks (tenant_id, task_type, create_time) WHERE task_type <> '';
CREATE INDEX tasks_by_entity ON tasks (tenant_id, entity_type, entity_id, create_time) WHERE entity_type IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (tenant_id, parent_task_id, create_time) WHERE parent_task_id IS NOT NULL;
CREATE INDEX tasks_by_labels ON tasks USING gin (labels jsonb_path_ops) WHERE labels IS NOT NULL;
-- Waiters of a slot in the order in which they are promoted.
CREATE INDEX tasks_by_slot ON tasks (tenant_id, slot, priority DESC, create_time, task_id)
    WHERE slot IS NOT NULL AND end_time IS NULL;

CREATE TABLE idempotency_keys (
    create_time timestamptz NOT NULL DEFAULT now(),
    method smallint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL CHECK (length(request_id) <= 64),
    task_id text COLLATE "C" NOT NULL,
    body_hash bytea NOT NULL,
    PRIMARY KEY (tenant_id, method, request_id)
);
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (create_time);
"""

LIVE = """
-- Claimable tasks. The key is the lane, then its FIFO order; only pops skip locked rows.
CREATE TABLE queue (
    class_id bigint NOT NULL,
    ready_time timestamptz NOT NULL,
    priority smallint NOT NULL,
    -- An expired lease lies beside it, which the claim moves to runs.
    has_lease boolean NOT NULL DEFAULT false,
    tenant_id text COLLATE "C" NOT NULL,
    pinned_runner text COLLATE "C" NOT NULL DEFAULT '',
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, class_id, priority, pinned_runner, ready_time, task_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- One row per claimed task: the current run. It stays after expiry until the next claim moves it to runs.
CREATE TABLE leases (
    generation bigint NOT NULL CHECK (generation >= 1),
    lease_id bigint NOT NULL,
    version bigint NOT NULL,
    session_epoch bigint NOT NULL DEFAULT 0,
    schedule_time timestamptz NOT NULL,
    start_time timestamptz,
    sign_time timestamptz,
    -- observe_time of the stored progress: an older report does not overwrite a newer one.
    progress_time timestamptz,
    -- Own expiry of a first lease, a pull worker's or a superseded session's lease; null follows the session.
    expire_time timestamptz,
    -- When taskdb ends the run itself if the holder has not: timeouts plus grace.
    deadline_time timestamptz,
    deadline_code text,
    action_deadline timestamptz,
    task_type_revision bigint NOT NULL DEFAULT 0,
    start_checkpoint bigint NOT NULL DEFAULT 0,
    attempt integer NOT NULL,
    phase smallint NOT NULL CONSTRAINT lease_phase CHECK (phase IN (2, 3, 5)),
    overlap smallint NOT NULL,
    on_runner_lost smallint NOT NULL,
    requested_action smallint NOT NULL DEFAULT 0,
    plain boolean NOT NULL DEFAULT false,
    timed boolean NOT NULL DEFAULT false,
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    runner_id text COLLATE "C" NOT NULL CONSTRAINT leased_task_has_runner CHECK (runner_id <> ''),
    claim_request_id text COLLATE "C" NOT NULL,
    slot text COLLATE "C",
    action jsonb,
    progress bytea,
    details bytea,
    PRIMARY KEY (tenant_id, task_id),
    CONSTRAINT running_lease_has_start CHECK (phase <> 3 OR start_time IS NOT NULL),
    CONSTRAINT requested_action_has_deadline CHECK ((requested_action <> 0) = (action_deadline IS NOT NULL))
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX leases_by_claim ON leases (runner_id, claim_request_id);
CREATE INDEX leases_asked ON leases (runner_id, action_deadline) WHERE requested_action <> 0;

-- Leases that taskdb has ended itself: what renewals tell their holders, for a while.
CREATE TABLE revocations (
    time timestamptz NOT NULL DEFAULT now(),
    generation bigint NOT NULL,
    lease_id bigint NOT NULL,
    runner_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (runner_id, tenant_id, task_id, generation)
);

-- At most one task of a slot holds it: the head, the only one that may have a queue row.
CREATE TABLE slots (
    tenant_id text COLLATE "C" NOT NULL,
    slot text COLLATE "C" NOT NULL,
    head_task_id text COLLATE "C",
    waiting_count integer NOT NULL DEFAULT 0 CHECK (waiting_count >= 0),
    PRIMARY KEY (tenant_id, slot)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- What becomes due: 1 a delayed or retried task, 2 queue timeout, 3 total timeout, 4 report of an external task.
CREATE TABLE timers (
    due_time timestamptz NOT NULL,
    kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 4),
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, task_id, kind)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX timers_by_due_time ON timers (due_time);

CREATE TABLE runners (
    version bigint NOT NULL DEFAULT 1,
    register_time timestamptz NOT NULL DEFAULT now(),
    update_time timestamptz NOT NULL DEFAULT now(),
    delete_time timestamptz,
    runner_id text COLLATE "C" PRIMARY KEY,
    key_id text COLLATE "C" NOT NULL,
    backend_type text NOT NULL DEFAULT '',
    registration bytea NOT NULL,
    scope jsonb,
    labels jsonb NOT NULL DEFAULT '{}',
    admin_labels jsonb NOT NULL DEFAULT '{}',
    drain bytea
);

-- How many runs of a runner ended. Apart from its row, which a hello locks before the leases that it lists: an outcome
-- has locked those when it counts.
CREATE TABLE runner_counts (
    completed_count bigint NOT NULL,
    failed_count bigint NOT NULL,
    runner_id text COLLATE "C" PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

-- One row per runner: the newest session. A heartbeat renews this row and nothing else.
CREATE TABLE sessions (
    epoch bigint NOT NULL CHECK (epoch >= 1),
    open_time timestamptz NOT NULL,
    heartbeat_time timestamptz NOT NULL,
    expire_time timestamptz NOT NULL,
    disconnect_time timestamptz,
    used_capacity integer NOT NULL DEFAULT 0,
    closed boolean NOT NULL DEFAULT false,
    draining boolean NOT NULL DEFAULT false,
    session_id uuid NOT NULL,
    instance_id uuid NOT NULL,
    runner_id text COLLATE "C" PRIMARY KEY REFERENCES runners ON DELETE CASCADE,
    scheduler_id text COLLATE "C" NOT NULL,
    free_resources bytea
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

-- Reports for external tasks, applied per task in the order of id.
CREATE TABLE inbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    create_time timestamptz NOT NULL DEFAULT now(),
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    actor_id text NOT NULL DEFAULT '',
    report bytea NOT NULL
);
CREATE INDEX inbox_by_task ON inbox (tenant_id, task_id, id);

CREATE TABLE coordinator_state (
    key text COLLATE "C" PRIMARY KEY CHECK (length(key) <= 64),
    value text NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    expires_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO coordinator_state (key, value, expires_at) VALUES ('leader_lock', '', now())
    ON CONFLICT DO NOTHING;
"""

HISTORY = """
CREATE TABLE runs (
    generation bigint NOT NULL,
    lease_id bigint NOT NULL,
    schedule_time timestamptz NOT NULL,
    start_time timestamptz,
    end_time timestamptz NOT NULL,
    task_type_revision bigint NOT NULL DEFAULT 0,
    start_checkpoint bigint NOT NULL DEFAULT 0,
    log_sequence bigint,
    attempt integer NOT NULL,
    exit_code integer,
    state smallint NOT NULL CONSTRAINT run_state CHECK (state BETWEEN 3 AND 8),
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    runner_id text COLLATE "C" NOT NULL,
    error bytea,
    progress bytea,
    PRIMARY KEY (tenant_id, task_id, generation)
);

-- One log for watches and audit. Ids are drawn under the shared advisory lock of the log.
CREATE SEQUENCE changes_id CACHE 1;
CREATE TABLE changes (
    id bigint NOT NULL DEFAULT nextval('changes_id'),
    time timestamptz NOT NULL,
    version bigint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 0,
    next_attempt_time timestamptz,
    attempt integer NOT NULL DEFAULT 0,
    retry_count integer NOT NULL DEFAULT 0,
    runner_loss_count integer NOT NULL DEFAULT 0,
    exit_code integer,
    -- 1 task, 2 runner, 3 tenant, 4 task type, 5 API key, 6 quarantine
    resource_kind smallint NOT NULL DEFAULT 1,
    event smallint NOT NULL,
    actor_type smallint NOT NULL,
    phase smallint NOT NULL DEFAULT 0,
    previous_phase smallint NOT NULL DEFAULT 0,
    pending_reason smallint NOT NULL DEFAULT 0,
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
-- Four changes a task cost 680 B of log with a B-tree here; this finds a resource's changes among 2 million in 5 ms.
CREATE INDEX changes_by_resource ON changes USING brin (resource_id text_bloom_ops)
    WITH (pages_per_range = 16, autosummarize = on);

-- A row is one batch of consecutive entries of a run, serialised as it was sent.
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
);
ALTER TABLE checkpoints ALTER COLUMN data SET STORAGE EXTERNAL;

-- Facts about this database: the epoch of the change log, the restore epoch.
CREATE TABLE facts (
    key text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO facts (key, value) VALUES ('restore_epoch', '1');
"""

TABLES = (
    "facts checkpoints logs changes runs coordinator_state inbox sessions runner_counts runners timers slots revocations leases queue "
    "idempotency_keys tasks placement_classes api_keys tenants"
)


def upgrade() -> None:
    for part in (TENANTS, TASKS, LIVE, HISTORY):
        op.execute(part)


def downgrade() -> None:
    for table in TABLES.split():
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP SEQUENCE changes_id")
