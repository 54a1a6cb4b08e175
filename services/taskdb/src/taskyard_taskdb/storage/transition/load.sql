-- name: lock_queue
-- Locks queue rows in key order and waits; a row that was claimed meanwhile is not returned. Primary key of queue.
SELECT q.tenant_id, q.task_id
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(class_ids)s::bigint[], %(priorities)s::smallint[], %(pinned_runners)s::text[],
        %(ready_times)s::timestamptz[], %(task_ids)s::text[])
    AS c (tenant_id, class_id, priority, pinned_runner, ready_time, task_id)
    ORDER BY c.tenant_id COLLATE "C", c.class_id, c.priority, c.pinned_runner COLLATE "C", c.ready_time,
        c.task_id COLLATE "C"
) c
CROSS JOIN LATERAL (
    SELECT tenant_id, task_id FROM queue
    WHERE queue.tenant_id = c.tenant_id AND queue.class_id = c.class_id AND queue.priority = c.priority
        AND queue.pinned_runner = c.pinned_runner AND queue.ready_time = c.ready_time
        AND queue.task_id = c.task_id
    FOR UPDATE
) q

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

-- name: lock_tasks
-- Locks tasks in key order, after their queue rows and leases; primary key of tasks. The last column is the time at
-- which the row was locked.
SELECT t.tenant_id, t.task_id, t.create_time, t.kind, t.class_id, t.priority, t.pinned_runner, t.slot, t.policy,
    t.version, t.phase, t.pending_reason, t.generation, t.attempt, t.retry_count, t.runner_loss_count,
    t.retry_delay, t.checkpoint_sequence, t.update_time, t.ready_time, t.next_attempt_time, t.schedule_time,
    t.start_time, t.end_time, t.total_deadline, t.last_runner_id, t.exit_code, t.error_code, t.error, t.result,
    t.progress, t.details, t.blocked, coalesce(t.has_dependents, false), t.group_id, t.limited, clock_timestamp()
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
    ORDER BY k.tenant_id COLLATE "C", k.task_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id FOR UPDATE
) t

-- name: lock_leases
-- Locks the leases of tasks in key order; primary key of leases. The session is read, not locked.
SELECT l.tenant_id, l.task_id, l.generation, l.version, l.phase, l.attempt, l.progress, l.details,
    l.lease_id, l.runner_id, l.session_epoch, l.claim_request_id, l.schedule_time,
    coalesce(l.expire_time, s.expire_time, 'epoch') AS expire_time, l.expire_time IS NULL AS follows_session,
    l.start_time, l.sign_time, l.progress_time, l.deadline_time, l.deadline_code, l.requested_action,
    l.action_deadline, l.action, coalesce(l.start_checkpoint, 0), l.task_type_revision,
    l.session_epoch = 0 OR s.expire_time IS NOT NULL AS in_session
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
