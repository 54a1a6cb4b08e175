-- name: find_tenant
-- Reads by primary key, no lock.
SELECT tenant_id, suspended FROM tenants WHERE tenant_id = %s
