-- name: all_lanes
-- Locks nothing. Jumps from lane to lane along the primary key of queue; counts each up to a limit.
WITH RECURSIVE lane AS (
    (SELECT tenant_id, class_id, priority, pinned_runner, ready_time
    FROM queue ORDER BY tenant_id, class_id, priority, pinned_runner, ready_time LIMIT 1)
    UNION ALL
    SELECT next.* FROM lane CROSS JOIN LATERAL (
        SELECT q.tenant_id, q.class_id, q.priority, q.pinned_runner, q.ready_time FROM queue q
        WHERE (q.tenant_id, q.class_id, q.priority, q.pinned_runner)
            > (lane.tenant_id, lane.class_id, lane.priority, lane.pinned_runner)
        ORDER BY q.tenant_id, q.class_id, q.priority, q.pinned_runner, q.ready_time LIMIT 1
    ) next
)
SELECT lane.tenant_id, lane.class_id, lane.priority, lane.pinned_runner, lane.ready_time, backlog.n
FROM lane CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM queue q
        WHERE q.tenant_id = lane.tenant_id AND q.class_id = lane.class_id AND q.priority = lane.priority
            AND q.pinned_runner = lane.pinned_runner
        LIMIT %(count_limit)s
    ) counted
) backlog

-- name: lane_heads
-- Locks nothing. The first row of each lane at or after its bound, and how many there are up to a limit; primary key of
-- queue.
SELECT lane.n, min(q.ready_time), count(q.ready_time)
FROM unnest(%(tenant_ids)s::text[], %(class_ids)s::bigint[], %(priorities)s::smallint[], %(pinned_runners)s::text[],
        %(after_times)s::timestamptz[])
    WITH ORDINALITY AS lane (tenant_id, class_id, priority, pinned_runner, after_time, n)
LEFT JOIN LATERAL (
    SELECT queue.ready_time FROM queue
    WHERE queue.tenant_id = lane.tenant_id AND queue.class_id = lane.class_id AND queue.priority = lane.priority
        AND queue.pinned_runner = lane.pinned_runner AND queue.ready_time >= lane.after_time
    ORDER BY queue.ready_time
    LIMIT %(count_limit)s
) q ON true
GROUP BY lane.n

-- name: below_bounds
-- Locks nothing. The first row of each lane below its bound: what was committed late, or given back by a rollback;
-- primary key of queue.
SELECT lane.n, q.ready_time
FROM unnest(%(tenant_ids)s::text[], %(class_ids)s::bigint[], %(priorities)s::smallint[], %(pinned_runners)s::text[],
        %(after_times)s::timestamptz[])
    WITH ORDINALITY AS lane (tenant_id, class_id, priority, pinned_runner, after_time, n)
CROSS JOIN LATERAL (
    SELECT queue.ready_time FROM queue
    WHERE queue.tenant_id = lane.tenant_id AND queue.class_id = lane.class_id AND queue.priority = lane.priority
        AND queue.pinned_runner = lane.pinned_runner AND queue.ready_time < lane.after_time
    ORDER BY queue.ready_time LIMIT 1
) q

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
-- Locks nothing. Leases whose holder is asked to act, of these tasks or, for null, all; leases_asked.
SELECT l.runner_id, l.tenant_id, l.task_id, l.generation, l.lease_id, l.requested_action,
    coalesce(l.action ->> 'reason', ''), greatest(l.action_deadline - now(), interval '0')
FROM leases l
WHERE l.requested_action <> 0
    AND (%(tenant_ids)s::text[] IS NULL OR (l.tenant_id, l.task_id) IN (
        SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[])))

-- name: revoked_leases
-- Locks nothing. Leases that were taken away from their holders within two minutes, of these tasks or, for null, of
-- these runners or, for null, all; the table is small.
SELECT r.runner_id, r.tenant_id, r.task_id, r.generation, r.lease_id, r.reason
FROM revocations r
WHERE r.time > now() - interval '2 minutes'
    AND (%(runner_ids)s::text[] IS NULL OR r.runner_id = ANY (%(runner_ids)s::text[]))
    AND (%(tenant_ids)s::text[] IS NULL OR (r.tenant_id, r.task_id) IN (
        SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[])))
