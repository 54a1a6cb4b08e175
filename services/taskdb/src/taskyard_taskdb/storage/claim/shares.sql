-- name: class_definitions
-- Locks nothing; primary key of placement_classes.
SELECT c.tenant_id, c.class_id, c.definition
FROM unnest(%(tenant_ids)s::text[], %(class_ids)s::bigint[]) AS k (tenant_id, class_id)
JOIN placement_classes c ON c.tenant_id = k.tenant_id AND c.class_id = k.class_id

-- name: tenant_shares
-- Locks nothing; primary keys of tenants and counters, task_types_paused. Null asks for all. A type of "system" counts
-- where the tenant has none of its own of that name.
SELECT t.tenant_id, t.tier, t.weight, t.suspended OR t.queue_paused,
    CASE WHEN c.max_concurrent_tasks > 0 THEN greatest(c.max_concurrent_tasks - c.leased, 0) ELSE -1 END,
    (SELECT array_agg(y.task_type) FROM task_types y WHERE y.queue_paused AND (y.tenant_id = t.tenant_id
        OR y.tenant_id = 'system' AND NOT EXISTS (SELECT FROM task_types o
            WHERE o.tenant_id = t.tenant_id AND o.task_type = y.task_type)))
FROM tenants t
LEFT JOIN tenant_counters c ON c.tenant_id = t.tenant_id
WHERE %(tenant_ids)s::text[] IS NULL OR t.tenant_id = ANY (%(tenant_ids)s::text[])

-- name: asked_leases
-- Locks nothing. Leases with a requested action, of these tasks or, for null, all; leases_asked.
SELECT l.runner_id, l.tenant_id, l.task_id, l.generation, l.lease_id, l.requested_action,
    coalesce(l.action ->> 'reason', ''), greatest(l.action_deadline - now(), interval '0')
FROM leases l
WHERE l.requested_action <> 0
    AND (%(tenant_ids)s::text[] IS NULL OR (l.tenant_id, l.task_id) IN (
        SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[])))

-- name: revoked_leases
-- Locks nothing. Leases that were revoked within two minutes, of these tasks or, for null, of
-- these runners or, for null, all; the table is small.
SELECT r.runner_id, r.tenant_id, r.task_id, r.generation, r.lease_id, r.reason
FROM revocations r
WHERE r.time > now() - interval '2 minutes'
    AND (%(runner_ids)s::text[] IS NULL OR r.runner_id = ANY (%(runner_ids)s::text[]))
    AND (%(tenant_ids)s::text[] IS NULL OR (r.tenant_id, r.task_id) IN (
        SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[])))
