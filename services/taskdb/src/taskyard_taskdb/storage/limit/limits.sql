-- name: insert_limit
-- Waits for a concurrent insert of the same id; no row comes back if the id is taken. A deleted one is created anew.
INSERT INTO limits AS l (tenant_id, limit_id, uid, description, max_running, max_running_per_key, starts_count, starts_per,
    starts_per_key_count, starts_per_key_per)
VALUES (%(tenant_id)s, %(limit_id)s, %(uid)s, %(description)s, %(max_running)s, %(max_running_per_key)s,
    %(starts_count)s, %(starts_per)s, %(starts_per_key_count)s, %(starts_per_key_per)s)
ON CONFLICT (tenant_id, limit_id) DO UPDATE SET uid = excluded.uid, description = excluded.description,
    max_running = excluded.max_running, max_running_per_key = excluded.max_running_per_key,
    starts_count = excluded.starts_count, starts_per = excluded.starts_per,
    starts_per_key_count = excluded.starts_per_key_count, starts_per_key_per = excluded.starts_per_key_per,
    version = 1, create_time = now(), update_time = now(), delete_time = NULL, try_time = clock_timestamp()
WHERE l.delete_time IS NOT NULL
RETURNING tenant_id, limit_id, uid, version, create_time, update_time, description, max_running, max_running_per_key,
    starts_count, starts_per, starts_per_key_count, starts_per_key_per, held

-- name: update_limit
-- Writes a limit that lock_limit has locked; primary key.
UPDATE limits
SET description = %(description)s, max_running = %(max_running)s, max_running_per_key = %(max_running_per_key)s,
    starts_count = %(starts_count)s, starts_per = %(starts_per)s, starts_per_key_count = %(starts_per_key_count)s,
    starts_per_key_per = %(starts_per_key_per)s, version = version + 1, update_time = clock_timestamp(),
    try_time = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND limit_id = %(limit_id)s
RETURNING tenant_id, limit_id, uid, version, create_time, update_time, description, max_running, max_running_per_key,
    starts_count, starts_per, starts_per_key_count, starts_per_key_per, held

-- name: read_limit
-- Reads by primary key, no lock; those that wait by task_limits_waiting, up to a bound.
SELECT l.tenant_id, l.limit_id, l.uid, l.version, l.create_time, l.update_time, l.description, l.max_running,
    l.max_running_per_key, l.starts_count, l.starts_per, l.starts_per_key_count, l.starts_per_key_per, l.held,
    (SELECT count(*) FROM (
        SELECT FROM task_limits u
        WHERE u.tenant_id = l.tenant_id AND u.limit_id = l.limit_id AND u.wait_time IS NOT NULL LIMIT 10000) w)
FROM limits l WHERE l.tenant_id = %s AND l.limit_id = %s AND l.delete_time IS NULL

-- name: lock_limit
-- Locks one limit by its primary key, and waits; for changes of its definition.
SELECT tenant_id, limit_id, uid, version, create_time, update_time, description, max_running, max_running_per_key,
    starts_count, starts_per, starts_per_key_count, starts_per_key_per, held
FROM limits WHERE tenant_id = %s AND limit_id = %s AND delete_time IS NULL FOR UPDATE

-- name: list_limits
-- Locks nothing; a page along the primary key. Those that wait by task_limits_waiting, up to a bound.
SELECT l.tenant_id, l.limit_id, l.uid, l.version, l.create_time, l.update_time, l.description, l.max_running,
    l.max_running_per_key, l.starts_count, l.starts_per, l.starts_per_key_count, l.starts_per_key_per, l.held,
    (SELECT count(*) FROM (
        SELECT FROM task_limits u
        WHERE u.tenant_id = l.tenant_id AND u.limit_id = l.limit_id AND u.wait_time IS NOT NULL LIMIT 10000) w)
FROM limits l
WHERE l.tenant_id = %(tenant_id)s AND l.limit_id > %(after)s AND l.delete_time IS NULL
ORDER BY l.limit_id LIMIT %(size)s

-- name: delete_limit
-- Marks a limit that lock_limit has locked as deleted; primary key.
UPDATE limits SET delete_time = clock_timestamp(), try_time = clock_timestamp(), update_time = clock_timestamp()
WHERE tenant_id = %s AND limit_id = %s

-- name: count_limits
-- Locks nothing; primary key, up to a limit.
SELECT count(*) FROM (SELECT FROM limits WHERE tenant_id = %s AND delete_time IS NULL LIMIT %s) counted

-- name: remove_limits
-- Removes deleted limits that lock_limits has locked, with their starts, unless tasks wait for them; primary keys,
-- task_limits_waiting.
WITH gone AS (
    DELETE FROM limits l
    USING unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
    WHERE l.tenant_id = k.tenant_id AND l.limit_id = k.limit_id AND l.delete_time IS NOT NULL AND l.held = 0
        AND NOT EXISTS (
            SELECT FROM task_limits u
            WHERE u.tenant_id = l.tenant_id AND u.limit_id = l.limit_id AND u.wait_time IS NOT NULL)
    RETURNING l.tenant_id, l.limit_id
)
DELETE FROM limit_starts s USING gone WHERE s.tenant_id = gone.tenant_id AND s.limit_id = gone.limit_id
