-- name: add_usage
-- Adds the capacity-seconds of ended runs; each is worth half after 300 s. Waits for other replicas that add to the same
-- tenants; callers sort by key. Primary key of tenant_usage.
INSERT INTO tenant_usage AS u (update_time, usage, tenant_id)
SELECT statement_timestamp(), seconds, tenant_id
FROM unnest(%(tenant_ids)s::text[], %(seconds)s::double precision[]) AS a (tenant_id, seconds)
ON CONFLICT (tenant_id) DO UPDATE SET
    usage = u.usage * power(0.5, extract(epoch FROM excluded.update_time - u.update_time)::double precision / 300)
        + excluded.usage,
    update_time = excluded.update_time

-- name: read_uses
-- Locks nothing; scans leases and tenant_usage, which are small. Capacity-seconds used as of now and leases held, of
-- tenants that hold something, whose ended runs were added to after a time, or that are named. A run counts until its
-- holder is given up, and uses capacity from its start.
SELECT coalesce(u.tenant_id, l.tenant_id),
    coalesce(l.usage, 0)
        + coalesce(u.usage * power(0.5, extract(epoch FROM statement_timestamp() - u.update_time)::double precision / 300), 0),
    coalesce(l.held, 0), u.update_time
FROM tenant_usage u
FULL JOIN (
    SELECT tenant_id, count(*) AS held, coalesce(sum(300 / ln(2::double precision) * (1 - power(0.5,
        greatest(extract(epoch FROM statement_timestamp() - start_time), 0)::double precision / 300))), 0) AS usage
    FROM leases WHERE phase <> 5 GROUP BY tenant_id
) l ON l.tenant_id = u.tenant_id
WHERE l.tenant_id IS NOT NULL OR u.update_time > %(after)s OR u.tenant_id = ANY (%(tenant_ids)s)

-- name: forget_usage
-- What was used four hours ago is worth nothing any more; the table is small.
DELETE FROM tenant_usage WHERE update_time < now() - interval '4 hours'
