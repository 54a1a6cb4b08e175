-- name: lock_limits
-- Locks limits in key order and waits; primary key of limits. Tasks and slots are locked before, counters of tenants
-- after. The last column is the time at which the row was locked.
SELECT l.tenant_id, l.limit_id, l.max_running, l.max_running_per_key, l.starts_count, l.starts_per,
    l.starts_per_key_count, l.starts_per_key_per, l.held, l.last_key, l.try_time, l.delete_time IS NOT NULL,
    clock_timestamp()
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
    ORDER BY k.tenant_id COLLATE "C", k.limit_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM limits WHERE limits.tenant_id = k.tenant_id AND limits.limit_id = k.limit_id FOR UPDATE
) l

-- name: peek_limits
-- Locks nothing; as lock_limits.
SELECT l.tenant_id, l.limit_id, l.max_running, l.max_running_per_key, l.starts_count, l.starts_per,
    l.starts_per_key_count, l.starts_per_key_per, l.held, l.last_key, l.try_time, l.delete_time IS NOT NULL,
    clock_timestamp()
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[]) AS k (tenant_id, limit_id)
JOIN limits l ON l.tenant_id = k.tenant_id AND l.limit_id = k.limit_id

-- name: read_limit_keys
-- Locks nothing: what keys of locked limits hold; primary key of limit_keys.
SELECT k.tenant_id, k.limit_id, k.key, h.held
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[], %(keys)s::text[]) AS k (tenant_id, limit_id, key)
CROSS JOIN LATERAL (
    SELECT held FROM limit_keys x
    WHERE x.tenant_id = k.tenant_id AND x.limit_id = k.limit_id AND x.key = k.key OFFSET 0
) h

-- name: read_limit_starts
-- Locks nothing: what has started lately under locked limits, in the order of its times; primary key of limit_starts.
SELECT k.n, s.time, s.units
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[], %(of_keys)s::boolean[], %(keys)s::text[])
    WITH ORDINALITY AS k (tenant_id, limit_id, of_key, key, n)
CROSS JOIN LATERAL (
    SELECT time, units FROM limit_starts x
    WHERE x.tenant_id = k.tenant_id AND x.limit_id = k.limit_id AND x.of_key = k.of_key AND x.key = k.key
    OFFSET 0
) s
ORDER BY k.n, s.time

-- name: write_limits
-- Writes the counts of locked limits; primary key of limits.
UPDATE limits l SET held = k.held, last_key = k.last_key, try_time = k.try_time
FROM unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[], %(held)s::bigint[], %(last_keys)s::text[],
    %(try_times)s::timestamptz[]) AS k (tenant_id, limit_id, held, last_key, try_time)
WHERE l.tenant_id = k.tenant_id AND l.limit_id = k.limit_id

-- name: write_limit_keys
-- Writes what keys of locked limits hold; primary key of limit_keys.
INSERT INTO limit_keys (held, tenant_id, limit_id, key)
SELECT * FROM unnest(%(held)s::bigint[], %(tenant_ids)s::text[], %(limit_ids)s::text[], %(keys)s::text[])
ON CONFLICT (tenant_id, limit_id, key) DO UPDATE SET held = excluded.held

-- name: delete_limit_keys
-- Deletes keys of locked limits that hold nothing any more; primary key of limit_keys.
DELETE FROM limit_keys h
USING unnest(%(tenant_ids)s::text[], %(limit_ids)s::text[], %(keys)s::text[]) AS k (tenant_id, limit_id, key)
WHERE h.tenant_id = k.tenant_id AND h.limit_id = k.limit_id AND h.key = k.key

-- name: write_limit_starts
-- Counts starts under locked limits; primary key of limit_starts.
INSERT INTO limit_starts (entry_time, time, units, of_key, tenant_id, limit_id, key)
SELECT * FROM unnest(%(entry_times)s::timestamptz[], %(times)s::timestamptz[], %(units)s::bigint[],
    %(of_keys)s::boolean[], %(tenant_ids)s::text[], %(limit_ids)s::text[], %(keys)s::text[])
ON CONFLICT (tenant_id, limit_id, of_key, key, entry_time)
DO UPDATE SET units = limit_starts.units + excluded.units, time = greatest(limit_starts.time, excluded.time)

-- name: prune_limit_starts
-- Deletes starts under locked limits that count no longer; primary key of limit_starts.
DELETE FROM limit_starts s
USING unnest(%(befores)s::timestamptz[], %(of_keys)s::boolean[], %(tenant_ids)s::text[], %(limit_ids)s::text[],
    %(keys)s::text[]) AS k (before, of_key, tenant_id, limit_id, key)
WHERE s.tenant_id = k.tenant_id AND s.limit_id = k.limit_id AND s.of_key = k.of_key AND s.key = k.key
    AND s.time < k.before
