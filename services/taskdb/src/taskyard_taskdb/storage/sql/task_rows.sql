-- name: peek_queue_keys
-- Locks nothing: the queue rows that tasks have now, so that they can be locked first. Primary keys.
SELECT t.tenant_id, t.task_id, t.class_id, t.priority, t.pinned_runner, t.ready_time
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id OFFSET 0
) t
CROSS JOIN LATERAL (
    SELECT FROM queue q
    WHERE q.tenant_id = t.tenant_id AND q.class_id = t.class_id AND q.priority = t.priority
        AND q.pinned_runner = t.pinned_runner AND q.ready_time = t.ready_time AND q.task_id = t.task_id
    OFFSET 0
) q

-- name: lock_leases
-- Locks the leases of tasks in key order; primary key of leases. The session is read, not locked.
SELECT l.tenant_id, l.task_id, l.generation, l.version, l.phase, l.attempt, l.progress, l.details,
    l.lease_id, l.runner_id, l.session_epoch, l.claim_request_id, l.schedule_time,
    coalesce(l.expire_time, s.expire_time, 'epoch') AS expire_time, l.expire_time IS NULL AS follows_session,
    l.start_time, l.sign_time, l.progress_time, l.deadline_time, l.deadline_code, l.requested_action,
    l.action_deadline, l.action, coalesce(l.start_checkpoint, 0), l.task_type_revision
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
    ORDER BY k.tenant_id COLLATE "C", k.task_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM leases WHERE leases.tenant_id = k.tenant_id AND leases.task_id = k.task_id FOR UPDATE
) l
LEFT JOIN LATERAL (
    SELECT sessions.expire_time FROM sessions
    WHERE sessions.runner_id = l.runner_id AND sessions.epoch = l.session_epoch
    OFFSET 0
) s ON true

-- name: lock_tasks
-- Locks tasks in key order, after their queue rows and leases; primary key of tasks. The last column is the time at
-- which the row was locked.
SELECT t.tenant_id, t.task_id, t.create_time, t.kind, t.class_id, t.priority, t.pinned_runner, t.slot, t.policy,
    t.version, t.phase, t.pending_reason, t.generation, t.attempt, t.retry_count, t.runner_loss_count,
    t.retry_delay, t.checkpoint_sequence, t.update_time, t.ready_time, t.next_attempt_time, t.schedule_time,
    t.start_time, t.end_time, t.total_deadline, t.last_runner_id, t.exit_code, t.error_code, t.error, t.result,
    t.progress, t.details, clock_timestamp()
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
    ORDER BY k.tenant_id COLLATE "C", k.task_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id FOR UPDATE
) t

-- name: update_tasks
-- Writes the status of tasks that lock_tasks has locked, guarded by what was read; primary key of tasks. A row that a
-- lease stands for keeps an older version.
UPDATE tasks t
SET version = c.version, generation = c.generation, update_time = c.update_time, ready_time = c.ready_time,
    next_attempt_time = c.next_attempt_time, schedule_time = c.schedule_time, start_time = c.start_time,
    end_time = c.end_time, retry_delay = c.retry_delay, checkpoint_sequence = c.checkpoint_sequence,
    attempt = c.attempt, retry_count = c.retry_count, runner_loss_count = c.runner_loss_count,
    exit_code = c.exit_code, phase = c.phase, pending_reason = c.pending_reason,
    last_runner_id = c.last_runner_id, error_code = c.error_code, result = c.result, error = c.error,
    progress = c.progress, details = c.details
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(old_versions)s::bigint[], %(leased)s::boolean[],
        %(ended)s::boolean[], %(versions)s::bigint[], %(generations)s::bigint[], %(update_times)s::timestamptz[],
        %(ready_times)s::timestamptz[], %(next_attempt_times)s::timestamptz[], %(schedule_times)s::timestamptz[],
        %(start_times)s::timestamptz[], %(end_times)s::timestamptz[], %(retry_delays)s::interval[],
        %(checkpoint_sequences)s::bigint[], %(attempts)s::integer[], %(retry_counts)s::integer[],
        %(runner_loss_counts)s::integer[], %(exit_codes)s::integer[], %(phases)s::smallint[],
        %(pending_reasons)s::smallint[], %(last_runner_ids)s::text[], %(error_codes)s::text[], %(results)s::bytea[],
        %(errors)s::bytea[], %(progresses)s::bytea[], %(details)s::bytea[])
    AS c (tenant_id, task_id, old_version, leased, ended, version, generation, update_time, ready_time,
        next_attempt_time, schedule_time, start_time, end_time, retry_delay, checkpoint_sequence, attempt,
        retry_count, runner_loss_count, exit_code, phase, pending_reason, last_runner_id, error_code, result, error,
        progress, details)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM tasks x WHERE x.tenant_id = c.tenant_id AND x.task_id = c.task_id OFFSET 0
) x
WHERE t.ctid = x.at
    AND CASE WHEN c.leased THEN t.version <= c.old_version ELSE t.version = c.old_version END
    AND (t.end_time IS NOT NULL) = c.ended

-- name: edit_tasks
-- Writes what an edit may change of tasks that lock_tasks has locked; primary key of tasks.
UPDATE tasks t
SET class_id = c.class_id, priority = c.priority, pinned_runner = c.pinned_runner, policy = c.policy,
    max_retries = c.max_retries, restart = c.restart, overlap = c.overlap, on_runner_lost = c.on_runner_lost,
    timed = c.timed, total_deadline = c.total_deadline
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(class_ids)s::bigint[], %(priorities)s::smallint[],
        %(pinned_runners)s::text[], %(policies)s::bytea[], %(max_retries)s::integer[], %(restarts)s::smallint[],
        %(overlaps)s::smallint[], %(runner_losts)s::smallint[], %(timed)s::boolean[],
        %(total_deadlines)s::timestamptz[])
    AS c (tenant_id, task_id, class_id, priority, pinned_runner, policy, max_retries, restart, overlap,
        on_runner_lost, timed, total_deadline)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM tasks x WHERE x.tenant_id = c.tenant_id AND x.task_id = c.task_id OFFSET 0
) x
WHERE t.ctid = x.at

-- name: delete_tasks
-- Deletes tasks that lock_tasks has locked, with what hangs on them; primary keys, logs_by_task.
WITH gone AS (
    DELETE FROM tasks t
    USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(old_versions)s::bigint[])
        AS c (tenant_id, task_id, old_version)
    WHERE t.tenant_id = c.tenant_id AND t.task_id = c.task_id AND t.version = c.old_version
    RETURNING t.tenant_id, t.task_id
), gone_runs AS (
    DELETE FROM runs USING gone WHERE runs.tenant_id = gone.tenant_id AND runs.task_id = gone.task_id
), gone_checkpoints AS (
    DELETE FROM checkpoints USING gone
    WHERE checkpoints.tenant_id = gone.tenant_id AND checkpoints.task_id = gone.task_id
), gone_timers AS (
    DELETE FROM timers USING gone WHERE timers.tenant_id = gone.tenant_id AND timers.task_id = gone.task_id
), gone_logs AS (
    DELETE FROM logs USING gone WHERE logs.tenant_id = gone.tenant_id AND logs.task_id = gone.task_id
)
SELECT tenant_id, task_id FROM gone

-- name: discard_checkpoints
-- Deletes the checkpoints of tasks that lock_tasks has locked; primary key.
DELETE FROM checkpoints c
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE c.tenant_id = k.tenant_id AND c.task_id = k.task_id
