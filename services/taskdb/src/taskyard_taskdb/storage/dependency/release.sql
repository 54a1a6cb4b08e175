-- name: close_dependencies
-- Closes a page of the open dependencies on tasks that have ended, and returns them; dependencies_open. Dependencies
-- change only under the lock of their prerequisite or of its row in dependency_backlog.
WITH page AS MATERIALIZED (
    SELECT d.at, e.phase
    FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(phases)s::smallint[]) AS e (tenant_id, task_id, phase)
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM dependencies
        WHERE dependencies.tenant_id = e.tenant_id AND dependencies.prerequisite_id = e.task_id AND dependencies.open
        ORDER BY dependencies.task_id LIMIT %(page)s
    ) d
    LIMIT %(page)s
)
UPDATE dependencies d SET open = false FROM page WHERE d.ctid = page.at AND d.open
RETURNING d.tenant_id, d.task_id, d.prerequisite_id, d.condition, page.phase

-- name: count_down
-- Counts down what tasks wait for, in key order; waits for other outcomes that do so, and counts from theirs. Primary
-- key of blocked_tasks.
UPDATE blocked_tasks b SET open_count = b.open_count - k.count,
    failed_task_id = coalesce(b.failed_task_id, k.failed_id),
    failed_phase = CASE WHEN b.failed_task_id IS NULL THEN k.failed_phase ELSE b.failed_phase END
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(counts)s::integer[], %(failed_ids)s::text[],
    %(failed_phases)s::smallint[]) AS k (tenant_id, task_id, count, failed_id, failed_phase)
WHERE b.tenant_id = k.tenant_id AND b.task_id = k.task_id
RETURNING b.tenant_id, b.task_id, b.failed_task_id, b.failed_phase, b.open_count

-- name: lock_settled
-- Locks a page of what tasks wait for no longer, skipping what another transaction has; blocked_tasks_settled.
SELECT tenant_id, task_id, failed_task_id, failed_phase FROM blocked_tasks
WHERE open_count = 0 OR failed_task_id IS NOT NULL
ORDER BY tenant_id, task_id
LIMIT %(page)s
FOR UPDATE SKIP LOCKED

-- name: lock_dependents
-- Locks tasks whose rows in blocked_tasks the caller has locked, and skips those that another transaction has: here the
-- order is blocked_tasks, then task. Primary key of tasks. The last column is the time of the lock.
SELECT t.tenant_id, t.task_id, t.create_time, t.kind, t.class_id, t.priority, t.pinned_runner, t.slot, t.policy,
    t.version, t.phase, t.pending_reason, t.generation, t.attempt, t.retry_count, t.runner_loss_count,
    t.retry_delay, t.checkpoint_sequence, t.update_time, t.ready_time, t.next_attempt_time, t.schedule_time,
    t.start_time, t.end_time, t.total_deadline, t.last_runner_id, t.exit_code, t.error_code, t.error, t.result,
    t.progress, t.details, t.blocked, coalesce(t.has_dependents, false), t.group_id, t.limited, clock_timestamp()
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id FOR UPDATE SKIP LOCKED
) t

-- name: remember_prerequisites
-- Leaves the dependents of tasks to the sweep; primary key of dependency_backlog.
INSERT INTO dependency_backlog (tenant_id, task_id, kind, phase)
SELECT k.tenant_id, k.task_id, %(kind)s::smallint, k.phase
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(phases)s::smallint[]) AS k (tenant_id, task_id, phase)
ON CONFLICT (tenant_id, task_id, kind) DO UPDATE SET phase = excluded.phase, after_id = ''

-- name: forget_prerequisites
-- Deletes rows of dependency_backlog; primary key.
DELETE FROM dependency_backlog b
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE b.tenant_id = k.tenant_id AND b.task_id = k.task_id AND b.kind = %(kind)s::smallint

-- name: lock_backlog
-- Locks a page of prerequisites that were left to the sweep, skipping what another transaction has; the table is small.
SELECT tenant_id, task_id, phase, after_id FROM dependency_backlog
WHERE kind = %(kind)s::smallint
ORDER BY create_time, tenant_id, task_id
LIMIT %(page)s
FOR UPDATE SKIP LOCKED

-- name: prerequisites_left
-- Locks nothing: which of these tasks still have open dependencies on them; dependencies_open.
SELECT k.tenant_id, k.task_id
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE EXISTS (
    SELECT FROM dependencies d WHERE d.tenant_id = k.tenant_id AND d.prerequisite_id = k.task_id AND d.open)

-- name: failed_dependents
-- Locks nothing: a page of the tasks that ended because of a prerequisite, by id; primary keys of dependencies and tasks.
SELECT d.tenant_id, d.task_id
FROM dependencies d
CROSS JOIN LATERAL (
    SELECT FROM tasks t
    WHERE t.tenant_id = d.tenant_id AND t.task_id = d.task_id AND t.phase = 13
        AND t.error_code = 'DEPENDENCY_FAILED'
    OFFSET 0
) t
WHERE d.tenant_id = %(tenant_id)s AND d.prerequisite_id = %(task_id)s AND d.task_id > %(after_id)s
ORDER BY d.task_id
LIMIT %(page)s

-- name: continue_backlog
-- Notes the last dependent that was considered, in a row that the caller has locked; primary key of dependency_backlog.
UPDATE dependency_backlog SET after_id = %(after_id)s
WHERE tenant_id = %(tenant_id)s AND task_id = %(task_id)s AND kind = %(kind)s::smallint

-- name: backlog_exists
-- Locks nothing; dependency_backlog, which is small, and blocked_tasks_settled.
SELECT EXISTS (SELECT FROM dependency_backlog)
    OR EXISTS (SELECT FROM blocked_tasks WHERE open_count = 0 OR failed_task_id IS NOT NULL)
