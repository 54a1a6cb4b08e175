-- name: uses_of_tasks
-- Locks nothing: what tasks name in spec.limits, which never changes; primary key of task_limits.
SELECT k.tenant_id, k.task_id, u.limit_id, u.key, u.units
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT limit_id, key, units FROM task_limits x
    WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id
    ORDER BY limit_id
) u

-- name: insert_task_limits
-- Inserts what new tasks name; the first limit of those that wait for admission is the one they wait for.
INSERT INTO task_limits (wait_time, units, tenant_id, task_id, limit_id, key)
SELECT CASE WHEN k.waits THEN clock_timestamp() END, k.units, k.tenant_id, k.task_id, k.limit_id, k.key
FROM unnest(%(waits)s::boolean[], %(units)s::integer[], %(tenant_ids)s::text[], %(task_ids)s::text[],
    %(limit_ids)s::text[], %(keys)s::text[]) AS k (waits, units, tenant_id, task_id, limit_id, key)

-- name: set_limited
-- Sets whether tasks that the caller has locked or inserted hold their units; primary key of tasks.
UPDATE tasks t SET limited = k.limited
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(limited)s::boolean[]) AS k (tenant_id, task_id, limited)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM tasks x WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id OFFSET 0
) x
WHERE t.ctid = x.at

-- name: release_units
-- Marks the units of locked tasks as given back and returns those that were counted; the limits are locked. Primary key
-- of task_limits.
UPDATE task_limits u SET held = false
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE u.tenant_id = k.tenant_id AND u.task_id = k.task_id AND u.held
RETURNING u.tenant_id, u.limit_id, u.key, u.units

-- name: await_limits
-- Makes locked tasks wait for the first of their limits; primary key of task_limits.
UPDATE task_limits u SET wait_time = clock_timestamp(), untried = %(untried)s::boolean
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT ctid AS at FROM task_limits x
    WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id
    ORDER BY x.limit_id LIMIT 1
) x
WHERE u.ctid = x.at

-- name: leave_limits
-- Ends the wait of locked tasks; primary key of task_limits.
UPDATE task_limits u SET wait_time = NULL, untried = false
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE u.tenant_id = k.tenant_id AND u.task_id = k.task_id AND u.wait_time IS NOT NULL

-- name: hold_units
-- Ends the wait of admitted, locked tasks and marks which of their units are counted; the limits are locked. Primary key
-- of task_limits.
UPDATE task_limits u SET wait_time = NULL, untried = false, held = k.held
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(limit_ids)s::text[], %(held)s::boolean[])
    AS k (tenant_id, task_id, limit_id, held)
WHERE u.tenant_id = k.tenant_id AND u.task_id = k.task_id AND u.limit_id = k.limit_id

-- name: move_waiters
-- Makes locked tasks wait for another of their limits, with their old place; primary key of task_limits.
UPDATE task_limits u SET wait_time = CASE WHEN u.limit_id = k.limit_id THEN k.wait_time END, untried = false
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(limit_ids)s::text[], %(wait_times)s::timestamptz[])
    AS k (tenant_id, task_id, limit_id, wait_time)
WHERE u.tenant_id = k.tenant_id AND u.task_id = k.task_id

-- name: note_tried
-- Marks those that wait for locked limits as looked at; task_limits_untried.
UPDATE task_limits u SET untried = false
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
WHERE u.tenant_id = k.tenant_id AND u.limit_id = k.limit_id AND u.untried

-- name: note_untried
-- Leaves those that wait for limits that do not exist to the sweep; task_limits_waiting.
UPDATE task_limits u SET untried = true
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
WHERE u.tenant_id = k.tenant_id AND u.limit_id = k.limit_id AND u.wait_time IS NOT NULL

-- name: choose_waiters
-- Locks nothing: of each limit, the next keys after the last one that was admitted and the named ones, and the first
-- tasks of each; task_limits_waiting, from key to key.
SELECT l.n, k.key, w.task_id, w.wait_time
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[], %(last_keys)s::text[], %(scans)s::boolean[])
    WITH ORDINALITY AS l (tenant_id, limit_id, last_key, scan, n)
CROSS JOIN LATERAL (
    SELECT r.key FROM unnest(%(named_ns)s::bigint[], %(named_keys)s::text[]) AS r (n, key) WHERE r.n = l.n
    UNION
    (
        WITH RECURSIVE later AS (
            (
                SELECT t.key, 1 AS n FROM task_limits t
                WHERE t.tenant_id = l.tenant_id AND t.limit_id = l.limit_id AND t.wait_time IS NOT NULL
                    AND t.key > l.last_key AND l.scan
                ORDER BY t.key LIMIT 1
            )
            UNION ALL
            SELECT x.key, later.n + 1
            FROM later
            CROSS JOIN LATERAL (
                SELECT t.key FROM task_limits t
                WHERE t.tenant_id = l.tenant_id AND t.limit_id = l.limit_id AND t.wait_time IS NOT NULL
                    AND t.key > later.key
                ORDER BY t.key LIMIT 1
            ) x
            WHERE later.n < %(most_keys)s
        ), earlier AS (
            (
                SELECT t.key, 1 AS n FROM task_limits t
                WHERE t.tenant_id = l.tenant_id AND t.limit_id = l.limit_id AND t.wait_time IS NOT NULL
                    AND t.key <= l.last_key AND l.scan
                ORDER BY t.key LIMIT 1
            )
            UNION ALL
            SELECT x.key, earlier.n + 1
            FROM earlier
            CROSS JOIN LATERAL (
                SELECT t.key FROM task_limits t
                WHERE t.tenant_id = l.tenant_id AND t.limit_id = l.limit_id AND t.wait_time IS NOT NULL
                    AND t.key > earlier.key AND t.key <= l.last_key
                ORDER BY t.key LIMIT 1
            ) x
            WHERE earlier.n + (SELECT count(*) FROM later) < %(most_keys)s
        )
        SELECT later.key FROM later
        UNION ALL
        SELECT earlier.key FROM earlier
    )
) k
CROSS JOIN LATERAL (
    SELECT t.task_id, t.wait_time FROM task_limits t
    WHERE t.tenant_id = l.tenant_id AND t.limit_id = l.limit_id AND t.key = k.key AND t.wait_time IS NOT NULL
    ORDER BY t.wait_time, t.task_id LIMIT %(per_key)s
) w
ORDER BY l.n, k.key, w.wait_time, w.task_id

-- name: lock_waiters
-- Locks tasks that wait for locked limits, and skips those that another transaction has: here the order is limit, then
-- task. Primary key of tasks.
SELECT t.tenant_id, t.task_id, t.create_time, t.kind, t.class_id, t.priority, t.pinned_runner, t.slot, t.policy,
    t.version, t.phase, t.pending_reason, t.generation, t.attempt, t.retry_count, t.runner_loss_count,
    t.retry_delay, t.checkpoint_sequence, t.update_time, t.ready_time, t.next_attempt_time, t.schedule_time,
    t.start_time, t.end_time, t.total_deadline, t.last_runner_id, t.exit_code, t.error_code, t.error, t.result,
    t.progress, t.details, t.blocked, coalesce(t.has_dependents, false), t.group_id, t.limited
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id FOR UPDATE SKIP LOCKED
) t

-- name: delete_task_limits
-- Deletes what tasks name that the caller has locked and deleted; primary key of task_limits.
DELETE FROM task_limits u
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE u.tenant_id = k.tenant_id AND u.task_id = k.task_id

-- name: next_limit
-- Locks nothing: the time, when the next limit is to be tried, and whether a task waits that was not looked at;
-- limits_due, task_limits_untried.
SELECT clock_timestamp(), (SELECT min(try_time) FROM limits WHERE try_time IS NOT NULL),
    EXISTS (SELECT FROM task_limits WHERE untried)

-- name: due_limits
-- Locks nothing: limits to try; limits_due, task_limits_untried.
(
    SELECT tenant_id, limit_id FROM limits WHERE try_time <= %(now)s ORDER BY try_time LIMIT %(page)s
)
UNION
(
    SELECT DISTINCT tenant_id, limit_id FROM task_limits WHERE untried LIMIT %(page)s
)
