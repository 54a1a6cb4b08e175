-- Registered runners. labels come from the runner, admin_labels from administrators.
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
    drain bytea,
    -- When the draining runner held no lease any more.
    drained_time timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 50);
CREATE INDEX runners_by_backend_type ON runners (backend_type) WHERE delete_time IS NULL;

-- How many runs of a runner ended. Not in its row of runners, which a hello locks before the leases that it lists: an
-- outcome has locked those when it counts.
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
