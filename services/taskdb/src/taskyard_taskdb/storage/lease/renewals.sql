-- name: renew_sessions
-- Locks valid sessions in key order, and renews them; an expired, closed or superseded one is not returned. One
-- that changed while its lock was waited for is judged, and written, as it is now. Primary key of sessions.
WITH locked AS MATERIALIZED (
    SELECT i.*
    FROM (
        SELECT * FROM unnest(%(runner_ids)s::text[], %(epochs)s::bigint[], %(lease_durations)s::interval[],
                %(used_capacities)s::integer[], %(free_resources)s::bytea[], %(draining)s::boolean[])
            WITH ORDINALITY AS i (runner_id, epoch, lease_duration, used_capacity, free_resources, draining, n)
        ORDER BY i.runner_id COLLATE "C"
    ) i
    CROSS JOIN LATERAL (
        SELECT FROM sessions s
        WHERE s.runner_id = i.runner_id AND s.epoch = i.epoch AND NOT s.closed AND s.expire_time > statement_timestamp()
        FOR UPDATE
    ) s
)
UPDATE sessions s
SET heartbeat_time = statement_timestamp(), expire_time = statement_timestamp() + i.lease_duration,
    used_capacity = i.used_capacity, free_resources = i.free_resources, draining = i.draining,
    disconnect_time = NULL
FROM locked i
WHERE s.runner_id = i.runner_id AND s.epoch = i.epoch
RETURNING i.n

-- name: follow_sessions
-- Lets listed leases follow the session that the caller has renewed: in key order, which callers see to. Leases that
-- expired, were taken away or are about to be ended are left for Python to decide. Primary key of leases.
UPDATE leases l
SET expire_time = NULL, session_epoch = i.epoch
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[], %(lease_ids)s::bigint[],
        %(runner_ids)s::text[], %(epochs)s::bigint[])
    WITH ORDINALITY AS i (tenant_id, task_id, generation, lease_id, runner_id, epoch, n)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM leases x WHERE x.tenant_id = i.tenant_id AND x.task_id = i.task_id OFFSET 0
) x
WHERE l.ctid = x.at AND l.generation = i.generation AND l.lease_id = i.lease_id
    AND l.runner_id IS NOT DISTINCT FROM i.runner_id
    AND l.phase IN (2, 3) AND l.session_epoch = i.epoch
    AND (l.expire_time IS NULL OR l.expire_time > statement_timestamp())
    AND (l.action_deadline IS NULL OR l.action_deadline > statement_timestamp())
    AND (l.deadline_time IS NULL OR l.deadline_time > statement_timestamp())
RETURNING i.n

-- name: expire_dropped
-- Ends leases that their runner has dropped: at once, or where runs must not overlap, when the session that the caller
-- has renewed would have ended. In key order, which callers see to. Primary key of leases.
UPDATE leases l
SET expire_time = statement_timestamp()
    + CASE WHEN l.overlap = 2 AND l.slot IS NULL THEN interval '0' ELSE i.lease_duration END
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[], %(lease_ids)s::bigint[],
        %(runner_ids)s::text[], %(epochs)s::bigint[], %(lease_durations)s::interval[])
    AS i (tenant_id, task_id, generation, lease_id, runner_id, epoch, lease_duration)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM leases x WHERE x.tenant_id = i.tenant_id AND x.task_id = i.task_id OFFSET 0
) x
WHERE l.ctid = x.at AND l.generation = i.generation AND l.lease_id = i.lease_id
    AND l.runner_id IS NOT DISTINCT FROM i.runner_id
    AND l.phase IN (2, 3) AND l.session_epoch = i.epoch AND l.expire_time IS NULL

-- name: renew_leases
-- Renews leases with an expiry of their own in key order, which callers see to; the rest is left for Python to decide.
-- Primary key of leases.
UPDATE leases l
SET expire_time = statement_timestamp() + %(lease_duration)s
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[], %(lease_ids)s::bigint[])
    WITH ORDINALITY AS i (tenant_id, task_id, generation, lease_id, n)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM leases x WHERE x.tenant_id = i.tenant_id AND x.task_id = i.task_id OFFSET 0
) x
WHERE l.ctid = x.at AND l.generation = i.generation AND l.lease_id = i.lease_id AND l.runner_id = %(runner_id)s
    AND l.phase IN (2, 3) AND l.session_epoch = 0 AND l.expire_time > statement_timestamp()
    AND l.requested_action = 0
    AND (l.deadline_time IS NULL OR l.deadline_time > statement_timestamp())
RETURNING i.n

-- name: runner_news
-- Locks nothing. Leases of these runners with a requested action (leases_asked) or that were revoked within two
-- minutes (primary key of revocations).
SELECT l.runner_id, l.tenant_id, l.task_id, l.generation, l.lease_id, l.requested_action,
    coalesce(l.action ->> 'reason', ''), greatest(l.action_deadline - statement_timestamp(), interval '0')
FROM leases l
WHERE l.requested_action <> 0 AND l.runner_id = ANY (%(runner_ids)s::text[])
UNION ALL
SELECT r.runner_id, r.tenant_id, r.task_id, r.generation, r.lease_id, 0, r.reason, NULL
FROM revocations r
WHERE r.runner_id = ANY (%(runner_ids)s::text[]) AND r.time > statement_timestamp() - interval '2 minutes'
