-- name: insert_idempotency_keys
-- Takes the keys in their order; waits for a concurrent insert of the same key, then leaves it alone.
INSERT INTO idempotency_keys (tenant_id, method, request_id, task_id, body_hash)
SELECT k.tenant_id, %s, k.request_id, k.task_id, k.body_hash
FROM unnest(%s::text[], %s::text[], %s::text[], %s::bytea[]) WITH ORDINALITY
    AS k (tenant_id, request_id, task_id, body_hash, position)
ORDER BY k.position
ON CONFLICT (tenant_id, method, request_id) DO NOTHING
RETURNING tenant_id, request_id

-- name: find_idempotency_keys
-- Reads by primary key, no lock.
SELECT i.tenant_id, i.request_id, i.task_id, i.body_hash
FROM (SELECT %s::smallint AS method) m, unnest(%s::text[], %s::text[]) AS k (tenant_id, request_id),
    idempotency_keys i
WHERE i.tenant_id = k.tenant_id AND i.method = m.method AND i.request_id = k.request_id

-- name: redirect_idempotency_keys
-- Updates, by primary key, rows that this transaction has inserted.
UPDATE idempotency_keys i SET task_id = k.task_id
FROM (SELECT %s::smallint AS method) m,
    unnest(%s::text[], %s::text[], %s::text[]) AS k (tenant_id, request_id, task_id)
WHERE i.tenant_id = k.tenant_id AND i.method = m.method AND i.request_id = k.request_id
