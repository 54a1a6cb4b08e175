-- name: insert_api_key
-- Waits for a concurrent insert of the same id; no row comes back if the id is taken.
INSERT INTO api_keys (key_id, kind, tenant_id, secret_hash, read_only, runner_scope, description, expire_time,
    parent_key_id)
VALUES (%s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s)
ON CONFLICT (key_id) DO NOTHING
RETURNING create_time

-- name: find_api_key
-- Reads by primary key, no lock.
SELECT key_id, kind, secret_hash, tenant_id, read_only, runner_scope, description, create_time, expire_time,
    revoke_time, parent_key_id
FROM api_keys
WHERE key_id = %s AND revoke_time IS NULL AND (expire_time IS NULL OR expire_time > statement_timestamp())

-- name: lock_api_key
-- Locks one key by its primary key, in force or not, and waits.
SELECT key_id, kind, secret_hash, tenant_id, read_only, runner_scope, description, create_time, expire_time,
    revoke_time, parent_key_id
FROM api_keys WHERE key_id = %s FOR NO KEY UPDATE

-- name: list_api_keys
-- Locks nothing; a page along the primary key, of one tenant or, for null, of all principals.
SELECT key_id, kind, secret_hash, tenant_id, read_only, runner_scope, description, create_time, expire_time,
    revoke_time, parent_key_id
FROM api_keys
WHERE key_id > %(after)s AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
ORDER BY key_id LIMIT %(size)s

-- name: revoke_api_key
-- Revokes a key that lock_api_key has locked, and the keys of its sign-ins, which are inserted under that lock.
-- Primary key, api_keys_by_parent.
UPDATE api_keys SET revoke_time = clock_timestamp()
WHERE (key_id = %(key_id)s OR parent_key_id = %(key_id)s) AND revoke_time IS NULL
RETURNING key_id, revoke_time
