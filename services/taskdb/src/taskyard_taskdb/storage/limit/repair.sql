-- name: doctor_limits
-- Locks nothing: limits whose counts, in total or of a key, differ from what tasks hold; scans task_limits, limits and
-- limit_keys.
WITH held AS MATERIALIZED (
    SELECT tenant_id, limit_id, key, sum(units) AS units FROM task_limits WHERE held GROUP BY 1, 2, 3
), of_limits AS MATERIALIZED (
    SELECT tenant_id, limit_id, sum(units) AS units FROM held GROUP BY 1, 2
)
SELECT tenant_id, limit_id FROM limits l FULL JOIN of_limits h USING (tenant_id, limit_id)
WHERE coalesce(l.held, 0) <> coalesce(h.units, 0)
UNION
SELECT tenant_id, limit_id FROM limit_keys k FULL JOIN held h USING (tenant_id, limit_id, key)
WHERE coalesce(k.held, 0) <> coalesce(h.units, 0)

-- name: doctor_limited_tasks
-- Locks nothing: tasks that wait for limits and are in the order of none, or the reverse, and those that hold units
-- though they neither run nor can be claimed; task_limits, tasks_held, primary keys.
SELECT t.tenant_id, t.task_id FROM tasks t
WHERE t.held_time IS NOT NULL AND t.phase = 1 AND t.pending_reason = 7 AND NOT EXISTS (
    SELECT FROM task_limits u
    WHERE u.tenant_id = t.tenant_id AND u.task_id = t.task_id AND u.wait_time IS NOT NULL)
UNION
SELECT u.tenant_id, u.task_id FROM task_limits u
LEFT JOIN tasks t ON t.tenant_id = u.tenant_id AND t.task_id = u.task_id
LEFT JOIN leases l ON l.tenant_id = u.tenant_id AND l.task_id = u.task_id
WHERE u.wait_time IS NOT NULL AND NOT coalesce(t.phase = 1 AND t.pending_reason = 7 AND l.task_id IS NULL, false)
    OR u.held AND NOT coalesce(t.limited AND t.end_time IS NULL
        AND (l.task_id IS NOT NULL OR t.phase = 5 OR t.phase = 1 AND t.pending_reason = 1), false)

-- name: recount_limits
-- Writes what tasks hold of limits that lock_limits has locked, and lets the sweep try them; primary keys, task_limits.
UPDATE limits l SET try_time = clock_timestamp(), held = coalesce((
    SELECT sum(u.units) FROM task_limits u
    WHERE u.tenant_id = l.tenant_id AND u.limit_id = l.limit_id AND u.held), 0)
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
WHERE l.tenant_id = k.tenant_id AND l.limit_id = k.limit_id

-- name: forget_limit_keys
-- Deletes what the keys of limits hold, which recount_limit_keys writes anew; the limits are locked. Primary key.
DELETE FROM limit_keys h USING unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
WHERE h.tenant_id = k.tenant_id AND h.limit_id = k.limit_id

-- name: recount_limit_keys
-- Writes what the keys of locked limits hold; task_limits. A limit that does not exist has none.
INSERT INTO limit_keys (held, tenant_id, limit_id, key)
SELECT sum(u.units), u.tenant_id, u.limit_id, u.key
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
JOIN limits l ON l.tenant_id = k.tenant_id AND l.limit_id = k.limit_id
JOIN task_limits u ON u.tenant_id = k.tenant_id AND u.limit_id = k.limit_id AND u.held
GROUP BY 2, 3, 4

-- name: release_stray_units
-- Marks units as given back: of locked tasks, and of limits that do not exist; primary key of task_limits.
UPDATE task_limits u SET held = false
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
WHERE u.tenant_id = k.tenant_id AND u.limit_id = k.limit_id AND u.held AND NOT EXISTS (
    SELECT FROM limits l WHERE l.tenant_id = u.tenant_id AND l.limit_id = u.limit_id)

-- name: delete_stray_task_limits
-- Deletes what tasks name that do not exist; primary keys.
DELETE FROM task_limits u
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE u.tenant_id = k.tenant_id AND u.task_id = k.task_id AND NOT EXISTS (
    SELECT FROM tasks t WHERE t.tenant_id = u.tenant_id AND t.task_id = u.task_id)
