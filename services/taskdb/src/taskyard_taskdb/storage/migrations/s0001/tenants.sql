-- One row per tenant, with the overrides of its tier's quota.
CREATE TABLE tenants (
    tenant_id text COLLATE "C" PRIMARY KEY CONSTRAINT tenant_id_length CHECK (length(tenant_id) BETWEEN 1 AND 64),
    display_name text NOT NULL CONSTRAINT tenant_display_name_length CHECK (length(display_name) <= 255),
    tier smallint NOT NULL CONSTRAINT tenant_tier CHECK (tier BETWEEN 1 AND 4),
    -- Here and below, null takes the tier's value and 0 is unlimited.
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

-- Keys of users, schedulers, runners and administrators; only a hash of the secret is stored.
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

-- The newest revision of each type. Queries and other services read the columns; `definition` is the whole message of
-- the contract.
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
    -- This revision or an earlier one checks results against a schema.
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

-- Every revision of each type: a run names the revision whose configuration it received.
CREATE TABLE task_type_revisions (
    revision bigint NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now(),
    tenant_id text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL,
    definition bytea NOT NULL,
    PRIMARY KEY (tenant_id, task_type, revision),
    FOREIGN KEY (tenant_id, task_type) REFERENCES task_types ON DELETE CASCADE
);

-- One row per tenant with a limit, none for the others. The row holds the limits in force beside the counts, so that a
-- transaction that has locked it has both. Every writer of tasks also opens this table for writing, which delays the
-- table lock under which a row is added.
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

-- Capacity-seconds of ended runs, each halved every five minutes, as of update_time. The usage of a current run is read
-- from its lease; a run that was counted as lost and resumes is subtracted until it ends.
CREATE TABLE tenant_usage (
    update_time timestamptz NOT NULL,
    usage double precision NOT NULL,
    tenant_id text COLLATE "C" PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
