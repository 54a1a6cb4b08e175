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

-- name: lane_keys
-- Locks nothing. The first lanes that have work, from lane to lane along the primary key of queue.
WITH RECURSIVE lane AS (
    (SELECT tenant_id, class_id, priority, pinned_runner
    FROM queue ORDER BY tenant_id, class_id, priority, pinned_runner LIMIT 1)
    UNION ALL
    SELECT next.* FROM lane CROSS JOIN LATERAL (
        SELECT q.tenant_id, q.class_id, q.priority, q.pinned_runner FROM queue q
        WHERE (q.tenant_id, q.class_id, q.priority, q.pinned_runner)
            > (lane.tenant_id, lane.class_id, lane.priority, lane.pinned_runner)
        ORDER BY q.tenant_id, q.class_id, q.priority, q.pinned_runner LIMIT 1
    ) next
)
SELECT * FROM lane LIMIT %(lane_limit)s

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
