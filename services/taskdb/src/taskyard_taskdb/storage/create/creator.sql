-- name: find_taken_ids
-- Reads by primary key, no lock.
SELECT t.tenant_id, t.task_id
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.task_id
