-- name: doctor_lock_webhooks
-- Locks the late webhooks of tasks in the order of their ids; webhooks_by_task. How often each was tried comes back.
SELECT w.id, w.attempt
FROM (SELECT DISTINCT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)) k
JOIN webhooks w ON w.tenant_id = k.tenant_id AND w.task_id = k.id
WHERE w.create_time < statement_timestamp() - interval '1 day'
ORDER BY w.id
FOR UPDATE OF w

-- name: doctor_hurry_webhooks
-- Lets locked webhooks be tried at once; primary key.
UPDATE webhooks SET due_time = statement_timestamp()
WHERE id = ANY (%(ids)s::bigint[]) AND due_time > statement_timestamp()

-- name: doctor_untried_webhooks
-- Locks nothing: webhooks that were neither tried nor put off since, of each task the oldest, before which no other is
-- tried; primary key, webhooks_by_task.
SELECT w.id
FROM unnest(%(ids)s::bigint[], %(attempts)s::integer[]) AS k (id, attempt)
JOIN webhooks w ON w.id = k.id
WHERE w.attempt = k.attempt AND w.due_time <= statement_timestamp() AND NOT EXISTS (
    SELECT FROM webhooks earlier
    WHERE earlier.tenant_id = w.tenant_id AND earlier.task_id = w.task_id AND earlier.id < w.id)
LIMIT 1
