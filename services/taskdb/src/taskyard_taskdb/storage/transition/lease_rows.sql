-- name: insert_leases
-- Grants leases one by one as the lifecycle decided; the queue rows are locked by the caller, nothing waits.
INSERT INTO leases (generation, lease_id, version, session_epoch, schedule_time, expire_time, task_type_revision,
    start_checkpoint, attempt, phase, overlap, on_runner_lost, plain, timed, tenant_id, task_id, runner_id,
    claim_request_id, slot)
SELECT c.generation, c.lease_id, c.version, c.session_epoch, c.schedule_time, c.expire_time, c.task_type_revision,
    nullif(c.start_checkpoint, 0), c.attempt, c.phase, t.overlap, t.on_runner_lost,
    t.plain AND t.has_dependents IS NOT TRUE AND t.group_id IS NULL AND t.limited IS NULL, t.timed, t.tenant_id, t.task_id,
    c.runner_id, c.claim_request_id, t.slot
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[], %(lease_ids)s::bigint[],
        %(versions)s::bigint[], %(epochs)s::bigint[], %(schedule_times)s::timestamptz[],
        %(expire_times)s::timestamptz[], %(task_type_revisions)s::bigint[], %(start_checkpoints)s::bigint[],
        %(attempts)s::integer[], %(phases)s::smallint[], %(runner_ids)s::text[], %(claim_request_ids)s::text[])
    AS c (tenant_id, task_id, generation, lease_id, version, session_epoch, schedule_time, expire_time,
        task_type_revision, start_checkpoint, attempt, phase, runner_id, claim_request_id)
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = c.tenant_id AND tasks.task_id = c.task_id OFFSET 0
) t

-- name: update_leases
-- Writes leases that lock_leases has locked, guarded by generation, lease_id and version; primary key of leases. A lease
-- begins to follow a session only while that is the current one of its runner: a hello may have superseded it since
-- the lease was read, but none can while the lease is locked.
UPDATE leases l
SET version = c.version, phase = c.phase, attempt = c.attempt, session_epoch = c.session_epoch,
    expire_time = c.expire_time, start_time = c.start_time, sign_time = c.sign_time,
    progress_time = c.progress_time, deadline_time = c.deadline_time, deadline_code = c.deadline_code,
    requested_action = c.requested_action, action_deadline = c.action_deadline, action = c.action::jsonb,
    start_checkpoint = nullif(c.start_checkpoint, 0), progress = c.progress, details = c.details
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[], %(lease_ids)s::bigint[],
        %(old_versions)s::bigint[], %(versions)s::bigint[], %(phases)s::smallint[], %(attempts)s::integer[],
        %(epochs)s::bigint[], %(expire_times)s::timestamptz[], %(start_times)s::timestamptz[],
        %(sign_times)s::timestamptz[], %(progress_times)s::timestamptz[], %(deadline_times)s::timestamptz[],
        %(deadline_codes)s::text[], %(requested_actions)s::smallint[], %(action_deadlines)s::timestamptz[],
        %(actions)s::text[], %(start_checkpoints)s::bigint[], %(progresses)s::bytea[], %(details)s::bytea[])
    AS c (tenant_id, task_id, generation, lease_id, old_version, version, phase, attempt, session_epoch,
        expire_time, start_time, sign_time, progress_time, deadline_time, deadline_code, requested_action,
        action_deadline, action, start_checkpoint, progress, details)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM leases x WHERE x.tenant_id = c.tenant_id AND x.task_id = c.task_id OFFSET 0
) x
WHERE l.ctid = x.at
    AND l.generation = c.generation AND l.lease_id = c.lease_id AND l.version = c.old_version
    AND (c.expire_time IS NOT NULL OR l.expire_time IS NULL OR EXISTS (
        SELECT FROM sessions s WHERE s.runner_id = l.runner_id AND s.epoch = c.session_epoch
    ))

-- name: end_runs
-- Moves leases that lock_leases has locked to runs, guarded by generation, lease_id and version; primary keys.
WITH ended AS (
    DELETE FROM leases l
    USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[], %(lease_ids)s::bigint[],
            %(old_versions)s::bigint[], %(attempts)s::integer[], %(start_times)s::timestamptz[],
            %(end_times)s::timestamptz[], %(states)s::smallint[], %(exit_codes)s::integer[], %(errors)s::bytea[],
            %(progresses)s::bytea[], %(start_checkpoints)s::bigint[], %(log_sequences)s::bigint[])
        AS c (tenant_id, task_id, generation, lease_id, old_version, attempt, start_time, end_time, state, exit_code,
            error, progress, start_checkpoint, log_sequence)
    CROSS JOIN LATERAL (
        SELECT x.ctid AS at FROM leases x WHERE x.tenant_id = c.tenant_id AND x.task_id = c.task_id OFFSET 0
    ) x
    WHERE l.ctid = x.at
        AND l.generation = c.generation AND l.lease_id = c.lease_id AND l.version = c.old_version
    RETURNING l.generation, l.lease_id, l.schedule_time, c.start_time, c.end_time, l.task_type_revision,
        c.start_checkpoint, c.attempt, c.exit_code, c.state, l.tenant_id, l.task_id, l.runner_id, c.error, c.progress,
        c.log_sequence
)
INSERT INTO runs (generation, lease_id, schedule_time, start_time, end_time, task_type_revision, start_checkpoint,
    attempt, exit_code, state, tenant_id, task_id, runner_id, error, progress, log_sequence)
SELECT generation, lease_id, schedule_time, start_time, end_time, task_type_revision, start_checkpoint, attempt,
    exit_code, state, tenant_id, task_id, runner_id, error, progress, log_sequence
FROM ended

-- name: insert_revocations
-- Notes leases that taskdb has ended itself, for the next renewals of their holders; new rows only.
INSERT INTO revocations (runner_id, tenant_id, task_id, generation, lease_id, reason)
SELECT * FROM unnest(%(runner_ids)s::text[], %(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[],
    %(lease_ids)s::bigint[], %(reasons)s::text[])
ON CONFLICT DO NOTHING
