-- name: begin_counting
-- The first count of a tenant, in a statement of its own behind the lock of all writers; tasks_held and primary keys.
INSERT INTO tenant_counters (tenant_id, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, tokens,
    pending, leased)
SELECT %(tenant_id)s, %(max_concurrent_tasks)s, %(max_queue_depth)s, %(rate_limit_per_sec)s, %(rate_burst)s,
    greatest(%(rate_burst)s, 1), pending, leased
FROM (
    SELECT (SELECT count(*) FROM queue q JOIN tasks t ON t.tenant_id = q.tenant_id AND t.task_id = q.task_id
            WHERE q.tenant_id = %(tenant_id)s AND NOT q.has_lease AND t.phase = 1)
        + (SELECT count(*) FROM tasks t
            WHERE t.tenant_id = %(tenant_id)s AND t.held_time IS NOT NULL AND t.phase = 1 AND t.pending_reason <> 1) AS pending,
        (SELECT count(*) FROM leases l WHERE l.tenant_id = %(tenant_id)s) AS leased
) counted

-- name: set_limits
-- Changes the limits of a tenant that is counted; primary key. A smaller bucket keeps what fits into it.
UPDATE tenant_counters
SET max_concurrent_tasks = %(max_concurrent_tasks)s, max_queue_depth = %(max_queue_depth)s,
    rate_limit_per_sec = %(rate_limit_per_sec)s, rate_burst = %(rate_burst)s,
    tokens = CASE WHEN rate_limit_per_sec = 0 THEN greatest(%(rate_burst)s, 1)
        WHEN %(rate_burst)s = 0 THEN tokens ELSE least(tokens, %(rate_burst)s) END,
    refill_time = CASE WHEN rate_limit_per_sec = 0 THEN clock_timestamp() ELSE refill_time END
WHERE tenant_id = %(tenant_id)s

-- name: end_counting
-- The tenant is unlimited; primary key.
DELETE FROM tenant_counters WHERE tenant_id = %s

-- name: count_tasks
-- Adds to the counters of those of these tenants that have some, locked in key order; primary key. The last locks of a
-- transaction but for the log's.
UPDATE tenant_counters c
SET pending = c.pending + n.pending, leased = c.leased + n.leased
FROM unnest(%(tenant_ids)s::text[], %(pending)s::integer[], %(leased)s::integer[]) AS n (tenant_id, pending, leased)
CROSS JOIN LATERAL (SELECT FROM tenant_counters x WHERE x.tenant_id = n.tenant_id FOR UPDATE) locked
WHERE c.tenant_id = n.tenant_id
RETURNING c.tenant_id

-- name: lock_counters
-- Locks the counters of those of these tenants that have some, in key order, and waits; primary key. The clock is read
-- outside of the locked subquery, and so after the wait.
SELECT x.*, clock_timestamp()
FROM unnest(%(tenant_ids)s::text[]) AS n (tenant_id)
CROSS JOIN LATERAL (
    SELECT c.tenant_id, c.pending, c.leased, c.max_concurrent_tasks, c.max_queue_depth, c.rate_limit_per_sec,
        c.rate_burst, c.tokens, c.refill_time
    FROM tenant_counters c
    WHERE c.tenant_id = n.tenant_id
    FOR UPDATE OF c
) x

-- name: take_tokens
-- Writes buckets that lock_counters has locked; primary key.
UPDATE tenant_counters c
SET tokens = n.tokens, refill_time = n.at
FROM unnest(%(tenant_ids)s::text[], %(tokens)s::double precision[], %(times)s::timestamptz[]) AS n (tenant_id, tokens, at)
WHERE c.tenant_id = n.tenant_id

-- name: read_counters
-- Locks nothing; primary key.
SELECT tenant_id, pending, leased, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, rate_burst, tokens,
    refill_time, clock_timestamp()
FROM tenant_counters
WHERE tenant_id = ANY (%(tenant_ids)s::text[])

-- name: count_waiting
-- Locks nothing. What a tenant that has no counters uses; tasks_held and primary keys of queue and leases. It does not read
-- the tasks of queue rows, for which the whole table would be scanned: one without a lease waits, also if it is on its way
-- from a lost runner.
SELECT (SELECT count(*) FROM queue q WHERE q.tenant_id = %(tenant_id)s AND NOT q.has_lease)
        + (SELECT count(*) FROM tasks t
            WHERE t.tenant_id = %(tenant_id)s AND t.held_time IS NOT NULL AND t.phase = 1 AND t.pending_reason <> 1) AS pending,
        (SELECT count(*) FROM leases l WHERE l.tenant_id = %(tenant_id)s) AS leased

-- name: off_counters
-- Locks nothing. Tenants whose counters differ from a recount, which is exact behind the lock of all writers only; tasks_held.
SELECT c.tenant_id, c.pending, c.leased, n.pending, n.leased
FROM tenant_counters c
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM queue q JOIN tasks t ON t.tenant_id = q.tenant_id AND t.task_id = q.task_id
            WHERE q.tenant_id = c.tenant_id AND NOT q.has_lease AND t.phase = 1)
        + (SELECT count(*) FROM tasks t
            WHERE t.tenant_id = c.tenant_id AND t.held_time IS NOT NULL AND t.phase = 1 AND t.pending_reason <> 1) AS pending,
        (SELECT count(*) FROM leases l WHERE l.tenant_id = c.tenant_id) AS leased
) n
WHERE (c.pending, c.leased) <> (n.pending, n.leased)

-- name: correct_counters
-- Sets counters to a recount made behind the lock of all writers; primary key.
UPDATE tenant_counters c SET pending = n.pending, leased = n.leased
FROM unnest(%(tenant_ids)s::text[], %(pending)s::bigint[], %(leased)s::bigint[]) AS n (tenant_id, pending, leased)
WHERE c.tenant_id = n.tenant_id
