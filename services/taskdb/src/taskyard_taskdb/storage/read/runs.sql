-- name: list_runs
-- Locks nothing; primary keys of leases, runs and tasks.
(
    SELECT l.generation, CASE WHEN l.start_time IS NULL THEN 0 ELSE l.attempt END, l.runner_id,
        CASE l.phase WHEN 2 THEN 1 WHEN 3 THEN 2 ELSE 7 END::smallint AS state, l.schedule_time, l.start_time,
        NULL::timestamptz AS end_time, NULL::integer AS exit_code, NULL::bytea AS error, l.progress,
        coalesce(l.start_checkpoint, 0), l.task_type_revision
    FROM leases l
    WHERE l.tenant_id = %(tenant_id)s AND l.task_id = %(task_id)s AND l.generation < %(before)s
    UNION ALL
    SELECT r.generation, r.attempt, r.runner_id, r.state, r.schedule_time, r.start_time, r.end_time, r.exit_code,
        r.error, r.progress, r.start_checkpoint, r.task_type_revision
    FROM ended_runs r
    WHERE r.tenant_id = %(tenant_id)s AND r.task_id = %(task_id)s AND r.generation < %(before)s
)
ORDER BY generation DESC
LIMIT %(limit)s

-- name: read_fence
-- Locks nothing; primary keys of tasks, leases and sessions.
SELECT coalesce(l.generation, t.generation), l.lease_id, coalesce(l.expire_time, s.expire_time) - clock_timestamp()
FROM tasks t
LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id AND l.phase IN (2, 3)
LEFT JOIN sessions s ON s.runner_id = l.runner_id AND s.epoch = l.session_epoch
WHERE t.tenant_id = %s AND t.task_id = %s
