-- name: set_timers
-- Inserts or moves timers of tasks that the caller has locked; primary key of timers.
INSERT INTO timers (tenant_id, task_id, kind, due_time)
SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(kinds)s::smallint[],
    %(due_times)s::timestamptz[])
ON CONFLICT (tenant_id, task_id, kind) DO UPDATE SET due_time = excluded.due_time

-- name: clear_timers
-- Deletes timers of tasks that the caller has locked, of one kind or (0) of all; primary key of timers.
DELETE FROM timers t
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(kinds)s::smallint[]) AS c (tenant_id, task_id, kind)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM timers x
    WHERE x.tenant_id = c.tenant_id AND x.task_id = c.task_id AND (c.kind = 0 OR x.kind = c.kind)
    OFFSET 0
) x
WHERE t.ctid = x.at

-- name: due_timers
-- Locks nothing; timers_by_due_time. The sweep locks the task of a row and reads it again before it acts.
SELECT tenant_id, task_id, kind, due_time FROM timers
WHERE due_time <= now()
ORDER BY due_time LIMIT %(page)s

-- name: timers_of
-- Locks nothing: the timers of tasks that the caller has locked, and so final; primary key of timers.
SELECT t.tenant_id, t.task_id, t.kind, t.due_time
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM timers WHERE timers.tenant_id = k.tenant_id AND timers.task_id = k.task_id OFFSET 0
) t
