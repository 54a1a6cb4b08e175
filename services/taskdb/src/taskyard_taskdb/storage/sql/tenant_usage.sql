-- name: sample_usage
-- Counts the leases of every tenant and adds what was held since the last sample, taken to have changed evenly; each
-- second used is worth half after 300. Reads all of leases; writes tenant_usage in key order, which the leader alone
-- does.
INSERT INTO tenant_usage AS u (tenant_id, held, sample_time)
SELECT tenant_id, sum(held), statement_timestamp()
FROM (
    SELECT tenant_id, count(*) AS held FROM leases WHERE phase <> 5 GROUP BY tenant_id
    UNION ALL
    SELECT tenant_id, 0 FROM tenant_usage WHERE held > 0
) counted
GROUP BY tenant_id
ORDER BY tenant_id
ON CONFLICT (tenant_id) DO UPDATE SET
    usage = u.usage * power(0.5, extract(epoch FROM excluded.sample_time - u.sample_time) / 300)
        + (u.held + excluded.held) / 2.0 * 300 / ln(2::double precision)
            * (1 - power(0.5, extract(epoch FROM excluded.sample_time - u.sample_time) / 300)),
    held = excluded.held, sample_time = excluded.sample_time

-- name: forget_usage
-- What was used four hours ago is worth nothing any more; the table is small.
DELETE FROM tenant_usage WHERE held = 0 AND sample_time < now() - interval '4 hours'

-- name: sampled_tenants
-- Locks nothing; the table is small.
SELECT tenant_id, sample_time FROM tenant_usage WHERE sample_time > %(after)s
