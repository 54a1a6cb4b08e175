-- name: known_groups
-- Locks nothing; primary key of groups.
SELECT g.tenant_id, g.group_id
FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[]) AS k (tenant_id, group_id)
JOIN groups g ON g.tenant_id = k.tenant_id AND g.group_id = k.group_id

-- name: make_groups
-- Inserts the groups of new tasks in key order; waits for concurrent inserts of the same ids. Primary key of groups.
INSERT INTO groups (tenant_id, group_id, parent_task_id, close_time)
SELECT k.tenant_id, k.group_id, k.parent_task_id, CASE WHEN k.closed THEN clock_timestamp() END
FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[], %(parent_ids)s::text[], %(closed)s::boolean[])
    AS k (tenant_id, group_id, parent_task_id, closed)
ORDER BY k.tenant_id COLLATE "C", k.group_id COLLATE "C"
ON CONFLICT (tenant_id, group_id) DO NOTHING

-- name: share_groups
-- Locks the groups of new tasks against being closed, in key order; who joins the same group does not wait. Primary key
-- of groups.
SELECT g.tenant_id, g.group_id, g.close_time IS NOT NULL, g.complete_time IS NOT NULL AND NOT EXISTS (
        SELECT FROM group_deltas d WHERE d.tenant_id = g.tenant_id AND d.group_id = g.group_id
            AND (d.live > 0 OR d.closes IS FALSE)),
    g.not_succeeded_count,
    g.parent_task_id, g.awaited
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[]) AS k (tenant_id, group_id)
    ORDER BY k.tenant_id COLLATE "C", k.group_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM groups WHERE groups.tenant_id = k.tenant_id AND groups.group_id = k.group_id FOR KEY SHARE
) g

-- name: lock_groups
-- As share_groups, against everybody: for a batch with tasks that wait for groups. Primary key of groups.
SELECT g.tenant_id, g.group_id, g.close_time IS NOT NULL, g.complete_time IS NOT NULL AND NOT EXISTS (
        SELECT FROM group_deltas d WHERE d.tenant_id = g.tenant_id AND d.group_id = g.group_id
            AND (d.live > 0 OR d.closes IS FALSE)),
    g.not_succeeded_count,
    g.parent_task_id, g.awaited
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[]) AS k (tenant_id, group_id)
    ORDER BY k.tenant_id COLLATE "C", k.group_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM groups WHERE groups.tenant_id = k.tenant_id AND groups.group_id = k.group_id FOR UPDATE
) g

-- name: await_groups
-- Marks groups that the caller has locked as awaited, and closes those that no task's end closes; primary key of groups.
UPDATE groups g SET awaited = true,
    close_time = CASE WHEN g.parent_task_id IS NULL THEN coalesce(g.close_time, clock_timestamp()) ELSE g.close_time END
FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[]) AS k (tenant_id, group_id)
WHERE g.tenant_id = k.tenant_id AND g.group_id = k.group_id
