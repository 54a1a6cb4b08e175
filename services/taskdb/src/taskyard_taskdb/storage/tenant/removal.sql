-- name: suspend_tenant
-- Suspends a tenant before it is deleted; whether it may have been given tasks within the time that replicas remember
-- it. Primary keys of tenants and tasks.
WITH before AS MATERIALIZED (
    SELECT suspended AND update_time < clock_timestamp() - %(ttl)s::interval AS long,
        EXISTS (SELECT FROM tasks WHERE tasks.tenant_id = tenants.tenant_id) AS used
    FROM tenants WHERE tenant_id = %(tenant_id)s FOR NO KEY UPDATE
), done AS (
    UPDATE tenants SET suspended = true, version = version + 1, update_time = clock_timestamp()
    WHERE tenant_id = %(tenant_id)s AND NOT suspended
)
SELECT used AND NOT long FROM before

-- name: tenant_tables
-- Locks nothing. Tables, without partitions, that have a column tenant_id.
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attname = 'tenant_id' AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relnamespace = current_schema()::regnamespace

-- name: revoke_tenant
-- Notes leases of a tenant for their holders, before they are deleted; primary key of leases.
INSERT INTO revocations (runner_id, tenant_id, task_id, generation, lease_id, reason)
SELECT runner_id, tenant_id, task_id, generation, lease_id, 'TASK_TERMINAL' FROM leases
WHERE tenant_id = %(tenant_id)s LIMIT %(page)s
ON CONFLICT DO NOTHING
