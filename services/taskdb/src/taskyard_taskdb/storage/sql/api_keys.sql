-- name: insert_api_key
-- Waits for a concurrent insert of the same id; no row comes back if the id is taken.
INSERT INTO api_keys (key_id, kind, tenant_id, secret_hash, read_only, runner_scope, description, expire_time)
VALUES (%s, %s, %s, %s, %s, %s::jsonb, %s, %s)
ON CONFLICT (key_id) DO NOTHING
RETURNING create_time

-- name: find_api_key
-- Reads by primary key, no lock.
SELECT key_id, kind, secret_hash, tenant_id, read_only, runner_scope, description, create_time, expire_time,
    revoke_time
FROM api_keys
WHERE key_id = %s AND revoke_time IS NULL AND (expire_time IS NULL OR expire_time > statement_timestamp())
