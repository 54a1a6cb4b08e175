-- name: place_of_waiter
-- Locks nothing: how many tasks of a key wait for a limit before a task, or at all, up to a bound; and since when the
-- task waits. task_limits_waiting, primary key of task_limits.
SELECT (
    SELECT count(*) FROM (
        SELECT FROM task_limits u
        WHERE u.tenant_id = %(tenant_id)s AND u.limit_id = %(limit_id)s AND u.key = %(key)s
            AND u.wait_time IS NOT NULL AND u.task_id <> %(task_id)s
            AND (own.wait_time IS NULL OR (u.wait_time, u.task_id) < (own.wait_time, %(task_id)s))
        LIMIT 1000
    ) w
), own.wait_time
FROM (SELECT) one
LEFT JOIN task_limits own
    ON own.tenant_id = %(tenant_id)s AND own.task_id = %(task_id)s AND own.limit_id = %(limit_id)s
