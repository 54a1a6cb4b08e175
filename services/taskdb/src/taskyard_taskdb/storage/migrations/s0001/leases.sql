-- One row per claimed task: the current run. It stays after expiry until the next claim moves it to runs.
CREATE TABLE leases (
    lease_id bigint NOT NULL,
    session_epoch bigint NOT NULL DEFAULT 0,
    schedule_time timestamptz NOT NULL,
    start_time timestamptz,
    sign_time timestamptz,
    -- observe_time of the stored progress: an older report does not overwrite a newer one.
    progress_time timestamptz,
    -- Own expiry of a first lease, a pull worker's or a superseded session's lease; null follows the session.
    expire_time timestamptz,
    -- When taskdb ends the run itself unless the holder has: timeouts plus grace.
    deadline_time timestamptz,
    action_deadline timestamptz,
    -- Null if the run began without a checkpoint.
    start_checkpoint bigint,
    generation integer NOT NULL CHECK (generation >= 1),
    version integer NOT NULL,
    attempt integer NOT NULL,
    task_type_revision integer NOT NULL DEFAULT 0,
    phase smallint NOT NULL CONSTRAINT lease_phase CHECK (phase IN (2, 3, 5)),
    overlap smallint NOT NULL,
    on_runner_lost smallint NOT NULL,
    requested_action smallint NOT NULL DEFAULT 0,
    plain boolean NOT NULL DEFAULT false,
    timed boolean NOT NULL DEFAULT false,
    deadline_code text,
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
-- The leases of a runner; those of one claim request are found by reading all of them.
CREATE INDEX leases_by_runner ON leases (runner_id);
CREATE INDEX leases_asked ON leases (runner_id, action_deadline) WHERE requested_action <> 0;

-- Leases that taskdb ended itself, kept for a while so that renewals can notify their holders.
CREATE TABLE revocations (
    time timestamptz NOT NULL DEFAULT now(),
    generation bigint NOT NULL,
    lease_id bigint NOT NULL,
    runner_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (runner_id, tenant_id, task_id, generation)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Ended runs, except the plain successes that their row of tasks describes.
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
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);

-- Every run that has ended, by the primary keys of runs and tasks.
CREATE VIEW ended_runs AS
SELECT generation, lease_id, schedule_time, start_time, end_time, task_type_revision, start_checkpoint,
    log_sequence, attempt, exit_code, state, tenant_id, task_id, runner_id, error, progress
FROM runs
UNION ALL
SELECT generation, run_lease_id, schedule_time, start_time, end_time, task_type_revision,
    coalesce(run_start_checkpoint, 0), run_log_sequence, attempt, exit_code, 3::smallint, tenant_id, task_id,
    last_runner_id, error, progress
FROM tasks WHERE run_lease_id IS NOT NULL;

-- No live task of the tenant was created before this time; null if there is none. The function goes from lane to lane
-- along the primary key of queue, whose rows are ready since their creation or held; it uses tasks_held and the primary
-- keys of leases and tasks.
CREATE FUNCTION oldest_live(tenant text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
WITH RECURSIVE lane AS (
    (SELECT class_id, priority, pinned_runner, ready_time FROM queue WHERE tenant_id = tenant
    ORDER BY class_id, priority, pinned_runner, ready_time LIMIT 1)
    UNION ALL
    SELECT next.* FROM lane CROSS JOIN LATERAL (
        SELECT q.class_id, q.priority, q.pinned_runner, q.ready_time FROM queue q
        WHERE q.tenant_id = tenant
            AND (q.class_id, q.priority, q.pinned_runner) > (lane.class_id, lane.priority, lane.pinned_runner)
        ORDER BY q.class_id, q.priority, q.pinned_runner, q.ready_time LIMIT 1
    ) next
)
SELECT least(
    (SELECT min(ready_time) FROM lane),
    (SELECT held_time FROM tasks WHERE tenant_id = tenant AND held_time IS NOT NULL
        ORDER BY held_time LIMIT 1),
    (SELECT min(t.create_time) FROM leases l
        JOIN tasks t ON t.tenant_id = l.tenant_id AND t.task_id = l.task_id WHERE l.tenant_id = tenant))
$$;
