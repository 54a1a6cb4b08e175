-- name: insert_group
-- Waits for a concurrent insert of the id; primary key of groups.
INSERT INTO groups (tenant_id, group_id, callback)
SELECT t.tenant_id, %(group_id)s, %(callback)s FROM tenants t WHERE t.tenant_id = %(tenant_id)s
ON CONFLICT (tenant_id, group_id) DO NOTHING
RETURNING tenant_id, group_id, uid, create_time, live_count, succeeded_count, not_succeeded_count, completion_count,
    close_time, complete_time, cancel_time, parent_task_id, callback, awaited

-- name: read_group
-- Locks nothing; what the leader has not added yet is included. Primary keys of groups and group_deltas.
SELECT g.tenant_id, g.group_id, g.uid, g.create_time, g.live_count + coalesce(d.live, 0),
    greatest(g.succeeded_count + coalesce(d.succeeded, 0), 0),
    greatest(g.not_succeeded_count + coalesce(d.not_succeeded, 0), 0),
    g.completion_count, g.close_time, CASE WHEN coalesce(d.reopens, false) THEN NULL ELSE g.complete_time END,
    g.cancel_time, g.parent_task_id, g.callback, g.awaited
FROM groups g
CROSS JOIN LATERAL (
    SELECT sum(x.live) AS live, sum(x.succeeded) AS succeeded, sum(x.not_succeeded) AS not_succeeded,
        bool_or(x.live > 0 OR x.closes IS FALSE) AS reopens
    FROM group_deltas x WHERE x.tenant_id = g.tenant_id AND x.group_id = g.group_id
) d
WHERE g.tenant_id = %s AND g.group_id = %s

-- name: lock_group
-- Locks a group against tasks that join it or wait for it; primary key of groups.
SELECT FROM groups WHERE tenant_id = %s AND group_id = %s FOR UPDATE

-- name: list_groups
-- Locks nothing, and leaves out what the leader has not added yet; primary key of groups.
SELECT tenant_id, group_id, uid, create_time, live_count, succeeded_count, not_succeeded_count, completion_count,
    close_time, complete_time, cancel_time, parent_task_id, callback, awaited
FROM groups
WHERE (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
    AND (tenant_id, group_id) > (%(after_tenant)s, %(after_group)s)
ORDER BY tenant_id, group_id
LIMIT %(size)s

-- name: close_group
-- Closes a group that the caller has locked; primary key of groups.
UPDATE groups SET close_time = clock_timestamp() WHERE tenant_id = %s AND group_id = %s AND close_time IS NULL

-- name: cancel_group
-- Closes a group that the caller has locked, and leaves its tasks to the sweep; primary key of groups.
UPDATE groups SET close_time = coalesce(close_time, clock_timestamp()), cancel_time = clock_timestamp(), cancelling = true,
    cancel_after_time = NULL, cancel_after_id = NULL, cancel_actor_type = %(actor_type)s::smallint,
    cancel_actor_id = %(actor_id)s, cancel_reason = %(reason)s
WHERE tenant_id = %(tenant_id)s AND group_id = %(group_id)s AND NOT cancelling

-- name: delete_group
-- Deletes a group that the caller has locked, and what was to be added to it; primary keys.
WITH gone AS (DELETE FROM group_deltas WHERE tenant_id = %(tenant_id)s AND group_id = %(group_id)s)
DELETE FROM groups WHERE tenant_id = %(tenant_id)s AND group_id = %(group_id)s

-- name: group_outcomes
-- Locks groups against their completion, in key order; a group with a task that was retried since is not complete.
-- Primary keys of groups and group_deltas.
SELECT g.tenant_id, g.group_id,
    g.complete_time IS NOT NULL AND NOT EXISTS (
        SELECT FROM group_deltas d WHERE d.tenant_id = g.tenant_id AND d.group_id = g.group_id
            AND (d.live > 0 OR d.closes IS FALSE)),
    g.not_succeeded_count
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[]) AS k (tenant_id, group_id)
    ORDER BY k.tenant_id COLLATE "C", k.group_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM groups WHERE groups.tenant_id = k.tenant_id AND groups.group_id = k.group_id FOR KEY SHARE
) g

-- name: delete_old_groups
-- Deletes a page of groups that are complete for long and have no task left; skips what is locked. Scans groups.
DELETE FROM groups g USING (
    SELECT tenant_id, group_id FROM groups x
    WHERE x.complete_time < statement_timestamp() - %(age)s::interval
        AND NOT EXISTS (SELECT FROM tasks t WHERE t.tenant_id = x.tenant_id AND t.group_id = x.group_id)
    LIMIT %(page)s
    FOR UPDATE SKIP LOCKED
) x
WHERE g.tenant_id = x.tenant_id AND g.group_id = x.group_id
