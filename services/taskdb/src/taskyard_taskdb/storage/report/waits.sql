-- name: live_children
-- Locks nothing: which of these tasks, which the caller has locked, are live children of others; primary key of tasks.
SELECT k.tenant_id, k.parent_id, k.task_id
FROM unnest(%(tenant_ids)s::text[], %(parent_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, parent_id, task_id)
CROSS JOIN LATERAL (
    SELECT FROM tasks t
    WHERE t.tenant_id = k.tenant_id AND t.task_id = k.task_id AND t.parent_task_id = k.parent_id
        AND t.end_time IS NULL
    OFFSET 0
) t

-- name: lock_waits
-- Waits for another task of the tenant that is about to wait for a child which itself waits; an advisory lock, after
-- the locks of tasks and before those of slots.
SELECT pg_advisory_xact_lock(hashtextextended('taskyard waits ' || %(tenant_id)s::text, 0))

-- name: find_wait
-- Locks nothing: follows what tasks wait for, up to a number of dependencies, to one that waits for a given task. A group
-- waits for its tasks, and a group of children for their parent too. dependencies_of_task, tasks_by_group, primary key
-- of groups.
WITH RECURSIVE waits (id, via) AS (
    SELECT id COLLATE "C", NULL::text COLLATE "C" FROM unnest(%(task_ids)s::text[]) AS c (id)
    UNION
    SELECT n.id, w.id FROM waits w CROSS JOIN LATERAL (
        SELECT d.prerequisite_id AS id FROM dependencies d
        WHERE d.tenant_id = %(tenant_id)s AND d.task_id = w.id AND d.open
        UNION ALL
        SELECT g.parent_task_id FROM groups g
        WHERE w.id LIKE 'groups/%%' AND g.tenant_id = %(tenant_id)s AND g.group_id = substr(w.id, 8)
            AND g.parent_task_id IS NOT NULL AND g.complete_time IS NULL
        UNION ALL
        SELECT t.task_id FROM tasks t
        WHERE w.id LIKE 'groups/%%' AND t.tenant_id = %(tenant_id)s AND t.group_id = substr(w.id, 8)
            AND t.end_time IS NULL AND t.blocked
    ) n
)
SELECT via FROM (SELECT id, via FROM waits LIMIT %(most)s) w WHERE id = %(task_id)s AND via IS NOT NULL LIMIT 1
