-- name: lock_session
-- Locks the session row of a runner, if there is one; primary key of sessions.
SELECT epoch, expire_time, closed, expire_time > statement_timestamp() AND NOT closed AS alive, instance_id
FROM sessions WHERE runner_id = %(runner_id)s
FOR UPDATE

-- name: put_session
-- Inserts the session of a runner or replaces the one that lock_session has locked, guarded by its epoch.
INSERT INTO sessions AS s (epoch, open_time, heartbeat_time, expire_time, used_capacity, session_id, instance_id,
    runner_id, scheduler_id)
VALUES (%(epoch)s, statement_timestamp(), statement_timestamp(), %(expire_time)s, %(used_capacity)s, %(session_id)s,
    %(instance_id)s, %(runner_id)s, %(scheduler_id)s)
ON CONFLICT (runner_id) DO UPDATE SET epoch = excluded.epoch, open_time = excluded.open_time,
    heartbeat_time = excluded.heartbeat_time, expire_time = excluded.expire_time,
    used_capacity = excluded.used_capacity, session_id = excluded.session_id, instance_id = excluded.instance_id,
    scheduler_id = excluded.scheduler_id, disconnect_time = NULL, closed = false, draining = false,
    free_resources = NULL
WHERE s.epoch = excluded.epoch - 1

-- name: renew_sessions
-- Locks sessions that stand, in key order, and renews them; an expired, closed or superseded one is not returned. One
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

-- name: leases_of_runner
-- Locks nothing: the tasks that a runner holds by record; leases_by_runner.
SELECT tenant_id, task_id FROM leases WHERE runner_id = %(runner_id)s

-- name: runner_news
-- Locks nothing. Leases of these runners whose holder is asked to act (leases_asked) or that were taken away within two
-- minutes (primary key of revocations).
SELECT l.runner_id, l.tenant_id, l.task_id, l.generation, l.lease_id, l.requested_action,
    coalesce(l.action ->> 'reason', ''), greatest(l.action_deadline - statement_timestamp(), interval '0')
FROM leases l
WHERE l.requested_action <> 0 AND l.runner_id = ANY (%(runner_ids)s::text[])
UNION ALL
SELECT r.runner_id, r.tenant_id, r.task_id, r.generation, r.lease_id, 3, r.reason, NULL
FROM revocations r
WHERE r.runner_id = ANY (%(runner_ids)s::text[]) AND r.time > statement_timestamp() - interval '2 minutes'

-- name: disconnect_session
-- Notes that the stream of a session broke, guarded by its epoch; primary key of sessions.
UPDATE sessions SET disconnect_time = statement_timestamp()
WHERE runner_id = %(runner_id)s AND epoch = %(epoch)s AND NOT closed

-- name: close_session
-- Ends the session that lock_session has locked, guarded by its epoch. What is released ends at once, the rest lives
-- until the recorded expiry.
UPDATE sessions SET closed = true,
    expire_time = CASE WHEN %(release)s THEN least(expire_time, statement_timestamp()) ELSE expire_time END
WHERE runner_id = %(runner_id)s AND epoch = %(epoch)s
