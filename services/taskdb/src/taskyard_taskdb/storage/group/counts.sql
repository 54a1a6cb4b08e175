-- name: add_group_deltas
-- Inserts only; nothing waits.
INSERT INTO group_deltas (tenant_id, group_id, live, succeeded, not_succeeded)
SELECT * FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[], %(lives)s::integer[], %(succeeded)s::integer[],
    %(not_succeeded)s::integer[])

-- name: close_groups_of_children
-- Inserts only, for groups that exist; primary key of groups.
INSERT INTO group_deltas (tenant_id, group_id, live, succeeded, not_succeeded, closes)
SELECT g.tenant_id, g.group_id, 0, 0, 0, %(closes)s::boolean
FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[]) AS k (tenant_id, group_id)
JOIN groups g ON g.tenant_id = k.tenant_id AND g.group_id = k.group_id AND g.parent_task_id IS NOT NULL

-- name: group_work_exists
-- Locks nothing; group_deltas, groups_ended and groups_cancelling, which are small.
SELECT EXISTS (SELECT FROM group_deltas) OR EXISTS (SELECT FROM groups WHERE cancelling)
    OR EXISTS (SELECT FROM groups WHERE close_time IS NOT NULL AND complete_time IS NULL AND live_count = 0)

-- name: fold_group_deltas
-- Adds a page of deltas to the groups and deletes them; waits for who closes a group, not for who joins it. Only the
-- leader does so. Primary keys of group_deltas and groups. Returns how many there were, and the groups that are complete
-- no more.
WITH page AS MATERIALIZED (
    SELECT tenant_id, group_id, id FROM group_deltas ORDER BY tenant_id, group_id, id LIMIT %(page)s
), taken AS (
    DELETE FROM group_deltas d USING page p
    WHERE d.tenant_id = p.tenant_id AND d.group_id = p.group_id AND d.id = p.id
    RETURNING d.tenant_id, d.group_id, d.id, d.live, d.succeeded, d.not_succeeded, d.closes
), sums AS MATERIALIZED (
    SELECT tenant_id, group_id, sum(live) AS live, sum(succeeded) AS succeeded, sum(not_succeeded) AS not_succeeded,
        bool_or(live > 0 OR closes IS FALSE) AS reopens,
        (array_agg(closes ORDER BY id DESC) FILTER (WHERE closes IS NOT NULL))[1] AS closes
    FROM taken GROUP BY 1, 2
), locked AS MATERIALIZED (
    SELECT g.tenant_id, g.group_id, g.complete_time IS NOT NULL AS complete
    FROM sums s JOIN groups g ON g.tenant_id = s.tenant_id AND g.group_id = s.group_id
    ORDER BY g.tenant_id, g.group_id
    FOR NO KEY UPDATE OF g
), folded AS (
    UPDATE groups g SET live_count = g.live_count + s.live, succeeded_count = greatest(g.succeeded_count + s.succeeded, 0),
        not_succeeded_count = greatest(g.not_succeeded_count + s.not_succeeded, 0),
        complete_time = CASE WHEN s.reopens THEN NULL ELSE g.complete_time END,
        close_time = CASE WHEN s.closes THEN coalesce(g.close_time, clock_timestamp())
            WHEN NOT s.closes AND g.cancel_time IS NULL THEN NULL ELSE g.close_time END
    FROM sums s JOIN locked l ON l.tenant_id = s.tenant_id AND l.group_id = s.group_id
    WHERE g.tenant_id = s.tenant_id AND g.group_id = s.group_id
    RETURNING g.tenant_id, g.group_id, l.complete AND s.reopens AS reopened
)
SELECT (SELECT count(*) FROM taken), coalesce(array_agg(f.tenant_id) FILTER (WHERE f.reopened), '{}'),
    coalesce(array_agg(f.group_id) FILTER (WHERE f.reopened), '{}')
FROM folded f

-- name: complete_groups
-- Completes closed groups without live tasks, of which nothing is left to be added: this is a statement after the one
-- that read their deltas. Skips groups that tasks are about to wait for. groups_ended, primary key of group_deltas.
WITH page AS MATERIALIZED (
    SELECT tenant_id, group_id FROM groups g
    WHERE close_time IS NOT NULL AND complete_time IS NULL AND live_count = 0
        AND NOT EXISTS (
            SELECT FROM group_deltas d WHERE d.tenant_id = g.tenant_id AND d.group_id = g.group_id)
    ORDER BY tenant_id, group_id
    LIMIT %(page)s
    FOR UPDATE SKIP LOCKED
)
UPDATE groups g SET complete_time = clock_timestamp(), completion_count = g.completion_count + 1
FROM page p WHERE g.tenant_id = p.tenant_id AND g.group_id = p.group_id
RETURNING g.tenant_id, g.group_id, g.uid, g.create_time, g.live_count, g.succeeded_count, g.not_succeeded_count,
    g.completion_count, g.close_time, g.complete_time, g.cancel_time, g.parent_task_id, g.callback, g.awaited

-- name: cancelled_group
-- Locks nothing: a group whose tasks are to be cancelled; groups_cancelling.
SELECT tenant_id, group_id, cancel_after_time, cancel_after_id, cancel_actor_type, cancel_actor_id, cancel_reason
FROM groups WHERE cancelling
ORDER BY tenant_id, group_id
LIMIT 1

-- name: group_members
-- Locks nothing: a page of the tasks of a group by creation, and which are live; tasks_by_group.
SELECT create_time, task_id, end_time IS NULL FROM tasks
WHERE tenant_id = %(tenant_id)s AND group_id = %(group_id)s
    AND (create_time, task_id) > (coalesce(%(after_time)s::timestamptz, '-infinity'), coalesce(%(after_id)s::text, ''))
ORDER BY create_time, task_id
LIMIT %(page)s

-- name: continue_cancel
-- Notes how far the tasks of a group are cancelled, unless they are to be cancelled anew; primary key of groups.
UPDATE groups SET cancel_after_time = %(after_time)s, cancel_after_id = %(after_id)s, cancelling = %(more)s
WHERE tenant_id = %(tenant_id)s AND group_id = %(group_id)s AND cancel_after_id IS NOT DISTINCT FROM %(was_id)s::text
