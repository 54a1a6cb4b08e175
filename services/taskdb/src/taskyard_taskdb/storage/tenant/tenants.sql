-- name: insert_tenant
-- Waits for a concurrent insert of the same id; no row comes back if the id is taken.
INSERT INTO tenants (tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec,
    rate_burst, weight, max_storage_bytes, suspended, queue_paused)
VALUES (%(tenant_id)s, %(display_name)s, %(tier)s, %(max_concurrent_tasks)s, %(max_queue_depth)s,
    %(rate_limit_per_sec)s, %(rate_burst)s, %(weight)s, %(max_storage_bytes)s, %(suspended)s,
    %(queue_paused)s)
ON CONFLICT (tenant_id) DO NOTHING
RETURNING tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, weight,
    max_storage_bytes, suspended, queue_paused, version, create_time, update_time

-- name: read_tenant
-- Reads by primary key, no lock.
SELECT tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, weight,
    max_storage_bytes, suspended, queue_paused, version, create_time, update_time
FROM tenants WHERE tenant_id = %s

-- name: read_tenants
-- Reads by primary key, no lock.
SELECT tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, weight,
    suspended, queue_paused, version, create_time, update_time
FROM tenants WHERE tenant_id = ANY (%s)

-- name: lock_tenant
-- Locks one tenant by its primary key, and waits; keys and types may still be added to it.
SELECT tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, weight,
    max_storage_bytes, suspended, queue_paused, version, create_time, update_time
FROM tenants WHERE tenant_id = %s FOR NO KEY UPDATE

-- name: list_tenants
-- Locks nothing; a page along the primary key.
SELECT tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, weight,
    max_storage_bytes, suspended, queue_paused, version, create_time, update_time
FROM tenants WHERE tenant_id > %s ORDER BY tenant_id LIMIT %s

-- name: update_tenant
-- Writes a tenant that lock_tenant has locked; primary key.
UPDATE tenants
SET display_name = %(display_name)s, tier = %(tier)s, max_concurrent_tasks = %(max_concurrent_tasks)s,
    max_queue_depth = %(max_queue_depth)s, rate_limit_per_sec = %(rate_limit_per_sec)s, rate_burst = %(rate_burst)s,
    weight = %(weight)s, max_storage_bytes = %(max_storage_bytes)s, suspended = %(suspended)s,
    queue_paused = %(queue_paused)s, version = version + 1, update_time = clock_timestamp()
WHERE tenant_id = %(tenant_id)s
RETURNING tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, weight,
    max_storage_bytes, suspended, queue_paused, version, create_time, update_time

-- name: delete_tenant
-- Deletes a tenant that lock_tenant has locked, its keys, types and counters with it; primary key.
DELETE FROM tenants WHERE tenant_id = %s

-- name: count_children
-- Locks nothing. Tasks and task types of a tenant, the tasks up to a limit; primary keys of both.
SELECT (SELECT count(*) FROM task_types WHERE tenant_id = %(tenant_id)s)
    + (SELECT count(*) FROM (SELECT FROM tasks WHERE tenant_id = %(tenant_id)s LIMIT 1000) counted)

-- name: find_tenant
-- Reads by primary key, no lock.
SELECT t.tenant_id, t.suspended, c.tenant_id IS NOT NULL, coalesce(c.rate_limit_per_sec, 0), coalesce(c.rate_burst, 0),
    coalesce(t.max_storage_bytes, 0)
FROM tenants t LEFT JOIN tenant_counters c ON c.tenant_id = t.tenant_id
WHERE t.tenant_id = %s
