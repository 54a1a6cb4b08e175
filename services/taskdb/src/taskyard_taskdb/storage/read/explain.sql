-- name: explain_lane
-- Locks nothing; primary key of queue. Whether the task is queued, and how many of its lane come before it, up to a
-- limit.
SELECT
    EXISTS (
        SELECT FROM queue
        WHERE tenant_id = %(tenant_id)s AND class_id = %(class_id)s AND priority = %(priority)s::smallint
            AND pinned_runner = %(pinned_runner)s AND ready_time = %(ready_time)s AND task_id = %(task_id)s),
    (
        SELECT count(*) FROM (
            SELECT FROM queue
            WHERE tenant_id = %(tenant_id)s AND class_id = %(class_id)s AND priority = %(priority)s::smallint
                AND pinned_runner = %(pinned_runner)s
                AND (ready_time, task_id) < (%(ready_time)s, %(task_id)s)
            LIMIT 100000
        ) before
    )

-- name: explain_slot
-- Locks nothing; primary keys of slots and leases, tasks_by_slot. The head of a slot, when its lease ends, and how many
-- wait before a task of this priority, time of creation and id.
SELECT s.head_task_id, coalesce(l.expire_time, n.expire_time),
    (
        SELECT count(*) FROM tasks t
        WHERE t.tenant_id = %(tenant_id)s AND t.slot = %(slot)s AND t.end_time IS NULL
            AND t.phase = 1 AND t.pending_reason = 4
            AND (-t.priority, t.create_time, t.task_id)
                < (-%(priority)s::integer, coalesce(%(create_time)s, now()), %(task_id)s)
    )
FROM (SELECT %(tenant_id)s::text AS tenant_id, %(slot)s::text AS slot) k
LEFT JOIN slots s ON s.tenant_id = k.tenant_id AND s.slot = k.slot
LEFT JOIN leases l ON l.tenant_id = k.tenant_id AND l.task_id = s.head_task_id
LEFT JOIN sessions n ON n.runner_id = l.runner_id AND n.epoch = l.session_epoch

-- name: explain_tenant
-- Locks nothing; primary key of tenants.
SELECT suspended, queue_paused, clock_timestamp() FROM tenants WHERE tenant_id = %(tenant_id)s

-- name: explain_type
-- Locks nothing; primary key of task_types. The tenant's own type, else that of "system".
SELECT tenant_id, disabled, queue_paused FROM task_types
WHERE task_type = %(task_type)s AND tenant_id IN (%(tenant_id)s, 'system')
ORDER BY tenant_id = 'system'
LIMIT 1

-- name: explain_executing
-- Locks nothing; leases_by_runner, primary key of tasks. The types of the tasks that each runner holds.
SELECT l.runner_id, array_agg(DISTINCT t.task_type)
FROM leases l JOIN tasks t ON t.tenant_id = l.tenant_id AND t.task_id = l.task_id
WHERE t.task_type = ANY (%(task_types)s::text[])
GROUP BY l.runner_id

-- name: explain_quarantine
-- Locks nothing; primary keys of quarantines and quarantine_holds. The last column is whether the task was paused for
-- it: one that its user paused stays paused after a release.
SELECT q.digest, q.create_time, q.runner_loss_count,
    EXISTS (
        SELECT FROM quarantine_holds h
        WHERE h.tenant_id = q.tenant_id AND h.digest = q.digest AND h.task_id = %(task_id)s)
FROM quarantines q
WHERE q.tenant_id = %(tenant_id)s AND q.digest = %(digest)s AND q.release_time IS NULL

-- name: explain_free
-- Locks nothing; primary key of sessions. What was free on each runner by its last heartbeat, where it accounts resources.
SELECT runner_id, free_resources FROM sessions
WHERE runner_id = ANY (%(runner_ids)s::text[]) AND free_resources IS NOT NULL

-- name: explain_dependencies
-- Locks nothing: what a task waits for, the first by position with their phases, and how many they are; children (of
-- negative position) only while it waits. dependencies_of_task, primary keys of tasks and leases.
SELECT d.prerequisite_id, coalesce(l.phase, t.phase,
    CASE WHEN g.group_id IS NULL THEN NULL WHEN g.complete_time IS NULL THEN 1 WHEN g.not_succeeded_count > 0 THEN 11
        ELSE 10 END),
    d.condition, d.position < 0, d.count
FROM (
    SELECT *, count(*) OVER () AS count FROM dependencies
    WHERE tenant_id = %(tenant_id)s AND task_id = %(task_id)s AND open AND (position >= 0 OR (
        SELECT b.blocked FROM tasks b WHERE b.tenant_id = %(tenant_id)s AND b.task_id = %(task_id)s))
    ORDER BY position, prerequisite_id LIMIT %(limit)s
) d
LEFT JOIN tasks t ON t.tenant_id = d.tenant_id AND t.task_id = d.prerequisite_id
LEFT JOIN leases l ON l.tenant_id = d.tenant_id AND l.task_id = d.prerequisite_id
LEFT JOIN groups g ON g.tenant_id = d.tenant_id AND g.group_id = substr(d.prerequisite_id, 8)
    AND d.prerequisite_id LIKE 'groups/%%'
ORDER BY d.position, d.prerequisite_id

-- name: explain_prerequisites
-- Locks nothing: the phases of tasks, archived ones included, and of groups as of tasks; primary keys.
SELECT k.task_id, coalesce(l.phase, t.phase, (
    SELECT a.phase FROM tasks_archive a WHERE a.tenant_id = k.tenant_id AND a.task_id = k.task_id
    ORDER BY a.end_time DESC LIMIT 1),
    CASE WHEN g.group_id IS NULL THEN NULL WHEN g.complete_time IS NULL THEN 1 WHEN g.not_succeeded_count > 0 THEN 11
        ELSE 10 END)
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
LEFT JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.task_id
LEFT JOIN leases l ON l.tenant_id = k.tenant_id AND l.task_id = k.task_id
LEFT JOIN groups g ON g.tenant_id = k.tenant_id AND g.group_id = substr(k.task_id, 8) AND k.task_id LIKE 'groups/%%'
