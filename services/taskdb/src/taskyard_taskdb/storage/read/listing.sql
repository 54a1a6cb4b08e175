-- name: live_tasks
-- Locks nothing: up to a limit of a tenant's live tasks, some of them twice; primary keys of leases and queue, tasks_held.
(SELECT task_id FROM leases WHERE tenant_id = %(tenant)s LIMIT %(limit)s)
UNION ALL
(SELECT task_id FROM tasks WHERE tenant_id = %(tenant)s AND held_time IS NOT NULL LIMIT %(limit)s)
UNION ALL
(SELECT task_id FROM queue WHERE tenant_id = %(tenant)s LIMIT %(limit)s)

-- name: oldest_live
-- Locks nothing: no live task of the tenant was created before; primary keys of queue, leases and tasks, tasks_held.
SELECT oldest_live(%(tenant)s)

-- name: oldest_task
-- Locks nothing: when the oldest task of a tenant, or for null of all, was created, and the time now; tasks_by_creation.
SELECT min(t.create_time), clock_timestamp()
FROM tenants n
CROSS JOIN LATERAL (
    SELECT create_time FROM tasks WHERE tasks.tenant_id = n.tenant_id ORDER BY create_time LIMIT 1
) t
WHERE %(tenant)s::text IS NULL OR n.tenant_id = %(tenant)s

-- name: count_ended
-- Locks nothing: how many tasks of a tenant, or for null of all, ended in a span of time, up to a limit; tasks_by_end.
SELECT count(*) FROM (
    SELECT FROM tasks
    WHERE end_time >= %(first)s AND end_time <= %(last)s AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
    LIMIT %(limit)s
) ended
