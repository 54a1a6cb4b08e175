-- name: insert_webhooks
-- Stores the calls of tasks that the transaction has locked and ended; primary key of tasks.
INSERT INTO webhooks (tenant_id, task_id, task)
SELECT t.tenant_id, t.task_id, to_jsonb(t)
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) WITH ORDINALITY AS k (tenant_id, task_id, n)
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id OFFSET 0
) t
WHERE t.callback IS NOT NULL
ORDER BY k.n

-- name: insert_group_webhooks
-- Stores the calls of groups that the transaction has completed, each in the form of a row of tasks with the group as its
-- details; primary key of groups.
INSERT INTO webhooks (tenant_id, task_id, task)
SELECT g.tenant_id, 'groups/' || g.group_id, jsonb_build_object(
    'tenant_id', g.tenant_id, 'task_id', 'groups/' || g.group_id, 'uid', g.uid, 'version', g.completion_count,
    'callback', to_jsonb(g.callback), 'details', to_jsonb(convert_to(to_jsonb(g)::text, 'UTF8')))
FROM unnest(%(tenant_ids)s::text[], %(group_ids)s::text[]) AS k (tenant_id, group_id)
JOIN groups g ON g.tenant_id = k.tenant_id AND g.group_id = k.group_id
WHERE g.callback IS NOT NULL

-- name: delete_webhook
-- Deletes a call that was delivered or is given up; primary key, guarded by the attempt.
DELETE FROM webhooks WHERE id = %(id)s AND attempt = %(attempt)s

-- name: retry_webhook_later
-- Postpones a failed call; primary key, guarded by the attempt.
UPDATE webhooks SET attempt = attempt + 1, due_time = statement_timestamp() + %(delay)s::interval, last_error = %(error)s
WHERE id = %(id)s AND attempt = %(attempt)s

-- name: postpone_webhooks
-- Postpones calls that were not tried, in the order of their ids; primary key.
UPDATE webhooks w SET due_time = statement_timestamp() + %(delay)s::interval
FROM (SELECT id FROM webhooks WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR UPDATE) x
WHERE w.id = x.id

-- name: next_webhook
-- Locks nothing: in how many seconds the next call is due; the first entry of webhooks_by_due_time.
SELECT extract(epoch FROM min(due_time) - statement_timestamp())::float8 FROM webhooks

-- name: webhook_backlog
-- Locks nothing; the table holds only undelivered calls.
SELECT count(*), extract(epoch FROM statement_timestamp() - min(create_time))::float8 FROM webhooks

-- name: list_webhooks
-- Locks nothing; primary key, or webhooks_by_task for one tenant. The table holds only undelivered calls.
SELECT id, tenant_id, task_id, (task->>'callback')::bytea, attempt, coalesce(last_error, ''), create_time, due_time
FROM webhooks
WHERE id > %(after)s AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
ORDER BY id
LIMIT %(size)s

-- name: make_webhook_secret
-- Inserts the secret of a tenant that has none; primary key.
INSERT INTO webhook_secrets (tenant_id, secret)
SELECT tenant_id, %(secret)s FROM tenants WHERE tenant_id = %(tenant_id)s
ON CONFLICT (tenant_id) DO NOTHING

-- name: rotate_webhook_secret
-- Replaces the secret of a tenant; primary key. The former secret also signs for a day.
UPDATE webhook_secrets SET former_secret = secret, secret = %(secret)s, rotate_time = statement_timestamp()
WHERE tenant_id = %(tenant_id)s

-- name: read_webhook_secrets
-- Locks nothing; primary key.
SELECT secret, CASE WHEN rotate_time > statement_timestamp() - interval '1 day' THEN former_secret END, rotate_time
FROM webhook_secrets WHERE tenant_id = %(tenant_id)s
