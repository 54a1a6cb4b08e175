"""What the hot path writes, made smaller: an outcome is a HOT update of the task, and a plain success has no row of `runs`.

Deploy: pre. Rewrites `tasks`, `leases` and `changes` under an exclusive lock.

PostgreSQL updates a row in place of its index entries (HOT) only if no column of any index, of its expressions or of
its predicate changes, on any row. So what an index of some tasks needs is a generated column that stays null in the
others: the outcome of a task that was queued at once changes none of them.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

TASKS = """
ALTER TABLE tasks RENAME TO tasks_before;
ALTER TABLE tasks_before RENAME CONSTRAINT tasks_pkey TO tasks_before_pkey;
DROP INDEX tasks_live, tasks_ended_by_creation, tasks_ended, tasks_by_type, tasks_by_entity, tasks_by_parent,
    tasks_by_labels, tasks_by_slot;

-- What is waiting, paused or ended is described by this row alone. While a lease exists, the lease
-- row carries phase, version, generation and attempt, and this row keeps those from before the claim.
-- What changes stands before what does not: of an update on its page the log then holds the first part only.
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
    -- The first run, where it was a plain success: with the other columns, all that a row of `runs` would say.
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
    -- Serialised messages of the contract, here and below: storage never looks inside.
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
    -- What a claim or a plain outcome has to know of the policy, which is in `policy` as a whole.
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
    -- The slot of a live task that is not queued. One that is heads its slot, which the row of the slot says.
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
-- A batch that ends together was created together and lies on the same pages: each needs room for a second, larger
-- version of all its rows.
) WITH (fillfactor = 45);

-- Without statistics a tenant is taken to have every 200th row, and of some hundred rows an index that begins with the
-- tenant seems to find one as well as the primary key does, in fewer pages. What is learnt here, that a tenant may have
-- them all, holds until real rows are analysed.
INSERT INTO tasks (tenant_id, task_id, phase, class_id, create_time, update_time, max_retries, kind, priority,
    creator_type, spec)
SELECT 'one', n::text, 1, 1, now(), now(), 0, 1, 0, 1, '' FROM generate_series(1, 1000) n;
ANALYZE tasks (tenant_id, task_id);
TRUNCATE tasks;

INSERT INTO tasks (version, generation, update_time, ready_time, next_attempt_time, schedule_time, start_time, end_time,
    retry_delay, checkpoint_sequence, attempt, retry_count, runner_loss_count, exit_code, phase, pending_reason,
    last_runner_id, error_code, result, error, progress, details, class_id, create_time, total_deadline, uid,
    task_type_revision, max_retries, kind, priority, creator_type, restart, overlap, on_runner_lost, timed, tenant_id,
    task_id, task_type, task_type_tenant, pinned_runner, slot, entity_type, entity_id, parent_task_id, creator_id,
    traceparent, spec, policy, callback, annotations, labels)
SELECT version, generation, update_time, ready_time, next_attempt_time, schedule_time, start_time, end_time,
    retry_delay, checkpoint_sequence, attempt, retry_count, runner_loss_count, exit_code, phase, pending_reason,
    last_runner_id, error_code, result, error, progress, details, class_id, create_time, total_deadline, uid,
    task_type_revision, max_retries, kind, priority, creator_type, restart, overlap, on_runner_lost, timed, tenant_id,
    task_id, task_type, task_type_tenant, pinned_runner, slot, entity_type, entity_id, parent_task_id, creator_id,
    traceparent, spec, policy, callback, annotations, labels
FROM tasks_before ORDER BY create_time;
DROP TABLE tasks_before;

CREATE INDEX tasks_by_creation ON tasks (tenant_id, create_time);
CREATE INDEX tasks_held ON tasks (tenant_id, held_time) WHERE held_time IS NOT NULL;
CREATE INDEX tasks_failed ON tasks (tenant_id, failed_phase, create_time) WHERE failed_phase IS NOT NULL;
-- For whoever asks for a range of end times. Tasks that were created together mostly end together. Since PostgreSQL 16
-- a BRIN index does not stand in the way of HOT.
CREATE INDEX tasks_by_end ON tasks USING brin (end_time) WITH (pages_per_range = 64, autosummarize = on);
CREATE INDEX tasks_by_type ON tasks (tenant_id, task_type, create_time) WHERE task_type <> '';
CREATE INDEX tasks_by_entity ON tasks (tenant_id, entity_type, entity_id, create_time) WHERE entity_type IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (tenant_id, parent_task_id, create_time) WHERE parent_task_id IS NOT NULL;
CREATE INDEX tasks_by_labels ON tasks USING gin (labels jsonb_path_ops) WHERE labels IS NOT NULL;
CREATE INDEX tasks_of_slot ON tasks (tenant_id, slot, create_time) WHERE slot IS NOT NULL;
-- Waiters of a slot in the order in which they are promoted.
CREATE INDEX tasks_by_slot ON tasks (tenant_id, live_slot, priority DESC, create_time, task_id)
    WHERE live_slot IS NOT NULL;
-- The last of them: while the table is empty, every index that begins with the tenant seems equally good for a look-up
-- by key, and PostgreSQL takes the youngest. Generic plans made then are kept until the table is analysed.
ALTER TABLE tasks ADD PRIMARY KEY (tenant_id, task_id);
"""

RUNS = """
-- Every run that has ended; primary keys of runs and tasks.
CREATE VIEW ended_runs AS
SELECT generation, lease_id, schedule_time, start_time, end_time, task_type_revision, start_checkpoint, log_sequence,
    attempt, exit_code, state, tenant_id, task_id, runner_id, error, progress
FROM runs
UNION ALL
SELECT generation, run_lease_id, schedule_time, start_time, end_time, task_type_revision,
    coalesce(run_start_checkpoint, 0), run_log_sequence, attempt, exit_code, 3::smallint, tenant_id, task_id,
    last_runner_id, error, progress
FROM tasks WHERE run_lease_id IS NOT NULL;
"""

LIVE = """
-- No live task of the tenant was created before this time; null if there is none. Jumps from lane to lane along the
-- primary key of queue, whose rows are ready since their creation or held; tasks_held, primary keys of leases and tasks.
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
    (SELECT held_time FROM tasks WHERE tenant_id = tenant AND held_time IS NOT NULL ORDER BY held_time LIMIT 1),
    (SELECT min(t.create_time) FROM leases l
        JOIN tasks t ON t.tenant_id = l.tenant_id AND t.task_id = l.task_id WHERE l.tenant_id = tenant))
$$;
"""

LEASES = """
ALTER TABLE leases RENAME TO leases_before;
ALTER TABLE leases_before RENAME CONSTRAINT leases_pkey TO leases_before_pkey;
DROP INDEX leases_by_claim, leases_asked;

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
    -- When taskdb ends the run itself if the holder has not: timeouts plus grace.
    deadline_time timestamptz,
    action_deadline timestamptz,
    -- Null where it began without one.
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

INSERT INTO leases (lease_id, session_epoch, schedule_time, start_time, sign_time, progress_time, expire_time,
    deadline_time, action_deadline, start_checkpoint, generation, version, attempt, task_type_revision, phase, overlap,
    on_runner_lost, requested_action, plain, timed, deadline_code, tenant_id, task_id, runner_id, claim_request_id, slot,
    action, progress, details)
SELECT lease_id, session_epoch, schedule_time, start_time, sign_time, progress_time, expire_time,
    deadline_time, action_deadline, nullif(start_checkpoint, 0), generation, version, attempt, task_type_revision, phase,
    overlap, on_runner_lost, requested_action, plain, timed, deadline_code, tenant_id, task_id, runner_id,
    claim_request_id, slot, action, progress, details
FROM leases_before;
DROP TABLE leases_before;
-- What a runner holds, and of that what one request claimed, which is found by looking at all of it.
CREATE INDEX leases_by_runner ON leases (runner_id);
CREATE INDEX leases_asked ON leases (runner_id, action_deadline) WHERE requested_action <> 0;
"""

CHANGES = """
-- A column that has nothing to say is null, which costs a bit; whoever reads asks the view below.
ALTER TABLE changes ALTER version TYPE integer, ALTER generation TYPE integer,
    ALTER generation DROP DEFAULT, ALTER generation DROP NOT NULL,
    ALTER attempt DROP DEFAULT, ALTER attempt DROP NOT NULL,
    ALTER retry_count DROP DEFAULT, ALTER retry_count DROP NOT NULL,
    ALTER runner_loss_count DROP DEFAULT, ALTER runner_loss_count DROP NOT NULL,
    ALTER previous_phase DROP DEFAULT, ALTER previous_phase DROP NOT NULL,
    ALTER pending_reason DROP DEFAULT, ALTER pending_reason DROP NOT NULL;

-- The log as it is read: a number is zero if nothing is said.
CREATE VIEW change_log AS
SELECT id, time, version, coalesce(generation, 0) AS generation, next_attempt_time, coalesce(attempt, 0) AS attempt,
    coalesce(retry_count, 0) AS retry_count, coalesce(runner_loss_count, 0) AS runner_loss_count, exit_code,
    resource_kind, event, actor_type, phase,
    coalesce(previous_phase, 0::smallint) AS previous_phase, coalesce(pending_reason, 0::smallint) AS pending_reason,
    tenant_id, resource_id, actor_id, runner_id, error_code, request_id, details
FROM changes;
"""


def upgrade() -> None:
    for part in (TASKS, RUNS, LEASES, LIVE, CHANGES):
        op.execute(part)


KEEP_RUNS = """
INSERT INTO runs (generation, lease_id, schedule_time, start_time, end_time, task_type_revision, start_checkpoint,
    log_sequence, attempt, exit_code, state, tenant_id, task_id, runner_id, error, progress)
SELECT generation, lease_id, schedule_time, start_time, end_time, task_type_revision, start_checkpoint, log_sequence,
    attempt, exit_code, state, tenant_id, task_id, runner_id, error, progress
FROM ended_runs WHERE NOT EXISTS (SELECT FROM runs r WHERE r.tenant_id = ended_runs.tenant_id
    AND r.task_id = ended_runs.task_id AND r.generation = ended_runs.generation);
DROP VIEW ended_runs;
"""
WIDE_TASKS = """
DROP INDEX tasks_by_creation, tasks_held, tasks_failed, tasks_by_end, tasks_of_slot, tasks_by_slot;
ALTER TABLE tasks DROP COLUMN live_slot, DROP COLUMN held_time, DROP COLUMN failed_phase,
    DROP COLUMN run_lease_id, DROP COLUMN run_start_checkpoint, DROP COLUMN run_log_sequence,
    ALTER version TYPE bigint, ALTER generation TYPE bigint, ALTER task_type_revision TYPE bigint;
UPDATE tasks SET uid = task_id::uuid WHERE uid IS NULL;
ALTER TABLE tasks ALTER uid SET NOT NULL, SET (fillfactor = 85);
CREATE INDEX tasks_live ON tasks (tenant_id, create_time) WHERE end_time IS NULL;
CREATE INDEX tasks_ended_by_creation ON tasks (tenant_id, create_time) WHERE end_time IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (tenant_id, phase, end_time) WHERE end_time IS NOT NULL;
CREATE INDEX tasks_by_slot ON tasks (tenant_id, slot, priority DESC, create_time, task_id)
    WHERE slot IS NOT NULL AND end_time IS NULL;
"""

WIDE_LEASES = """
DROP INDEX leases_by_runner;
UPDATE leases SET start_checkpoint = 0 WHERE start_checkpoint IS NULL;
ALTER TABLE leases ALTER generation TYPE bigint, ALTER version TYPE bigint, ALTER task_type_revision TYPE bigint,
    ALTER start_checkpoint SET DEFAULT 0, ALTER start_checkpoint SET NOT NULL;
CREATE INDEX leases_by_claim ON leases (runner_id, claim_request_id);
"""
WIDE_CHANGES = """
UPDATE changes SET generation = v.generation, attempt = v.attempt, retry_count = v.retry_count,
    runner_loss_count = v.runner_loss_count, previous_phase = v.previous_phase,
    pending_reason = v.pending_reason
FROM change_log v WHERE v.id = changes.id AND v.time = changes.time;
DROP VIEW change_log;
ALTER TABLE changes ALTER version TYPE bigint, ALTER generation TYPE bigint,
    ALTER generation SET DEFAULT 0, ALTER generation SET NOT NULL,
    ALTER attempt SET DEFAULT 0, ALTER attempt SET NOT NULL,
    ALTER retry_count SET DEFAULT 0, ALTER retry_count SET NOT NULL,
    ALTER runner_loss_count SET DEFAULT 0, ALTER runner_loss_count SET NOT NULL,
    ALTER previous_phase SET DEFAULT 0, ALTER previous_phase SET NOT NULL,
    ALTER pending_reason SET DEFAULT 0, ALTER pending_reason SET NOT NULL;
"""


def downgrade() -> None:
    op.execute("DROP FUNCTION oldest_live(text)")
    for part in (WIDE_CHANGES, WIDE_LEASES, KEEP_RUNS, WIDE_TASKS):
        op.execute(part)
