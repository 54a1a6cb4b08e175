-- name: insert_updates
-- Appends in the order given those whose task exists and is external; tasks by key, no lock.
INSERT INTO inbox (tenant_id, task_id, actor_id, report)
SELECT u.tenant_id, u.task_id, u.actor_id, u.report
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(actor_ids)s::text[], %(reports)s::bytea[])
    WITH ORDINALITY AS u (tenant_id, task_id, actor_id, report, place)
JOIN tasks t ON t.tenant_id = u.tenant_id AND t.task_id = u.task_id
WHERE t.kind = %(external)s
ORDER BY u.place
RETURNING tenant_id, task_id

-- name: take_updates
-- Deletes the oldest reports of tasks that the transaction has locked; inbox_by_task.
DELETE FROM inbox
WHERE id IN (
    SELECT i.id
    FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
    JOIN inbox i ON i.tenant_id = k.tenant_id AND i.task_id = k.task_id
    ORDER BY i.id LIMIT %(page)s
)
RETURNING id, tenant_id, task_id, actor_id, report

-- name: forget_updates
-- Deletes the reports of tasks that do not exist any more; inbox_by_task.
DELETE FROM inbox i
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE i.tenant_id = k.tenant_id AND i.task_id = k.task_id

-- name: replace_spec
-- Writes the spec of a task that the transaction has locked; primary key of tasks.
UPDATE tasks SET spec = %s WHERE tenant_id = %s AND task_id = %s
