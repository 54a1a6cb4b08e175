-- name: expired_leases
-- Locks nothing: active leases past their own expiry or that of their session, a page in key order. The caller locks each
-- lease and checks it again. Scans leases, which are few.
SELECT l.tenant_id, l.task_id, l.generation
FROM leases l LEFT JOIN sessions s ON s.runner_id = l.runner_id AND s.epoch = l.session_epoch
WHERE l.phase IN (2, 3) AND coalesce(l.expire_time, s.expire_time, '-infinity') <= statement_timestamp()
    AND (l.tenant_id, l.task_id) > (%(after_tenant)s, %(after_task)s)
ORDER BY l.tenant_id, l.task_id LIMIT %(page)s

-- name: disconnected_leases
-- Locks nothing: leases to redistribute because their session has been disconnected for too long. Scans sessions;
-- leases_by_runner.
SELECT l.tenant_id, l.task_id, l.generation
FROM sessions s JOIN leases l ON l.runner_id = s.runner_id AND l.session_epoch = s.epoch
WHERE s.disconnect_time <= statement_timestamp() - %(patience)s::interval AND NOT s.closed
    AND l.phase IN (2, 3) AND l.on_runner_lost = 2 AND l.overlap = 2 AND l.slot IS NULL
    AND (l.tenant_id, l.task_id) > (%(after_tenant)s, %(after_task)s)
ORDER BY l.tenant_id, l.task_id LIMIT %(page)s

-- name: overdue_runs
-- Locks nothing: runs past their deadline, the backstop of their timeouts; scans leases.
SELECT tenant_id, task_id, generation FROM leases
WHERE phase = 3 AND deadline_time <= statement_timestamp()
    AND (tenant_id, task_id) > (%(after_tenant)s, %(after_task)s)
ORDER BY tenant_id, task_id LIMIT %(page)s

-- name: overdue_actions
-- Locks nothing: leases whose holder has not complied in time; leases_asked.
SELECT tenant_id, task_id, generation FROM leases
WHERE requested_action <> 0 AND action_deadline <= statement_timestamp()
    AND (tenant_id, task_id) > (%(after_tenant)s, %(after_task)s)
ORDER BY tenant_id, task_id LIMIT %(page)s

-- name: lease_events
-- Locks nothing: whether a lease, session, deadline or disconnection is due, and in how many seconds the next one is; scans
-- leases and sessions, which are few.
SELECT coalesce(bool_or(due <= statement_timestamp()), false),
    extract(epoch FROM min(due) FILTER (WHERE due > statement_timestamp()) - statement_timestamp())::float8
FROM (
    SELECT unnest(ARRAY[l.expire_time, CASE WHEN l.phase = 3 THEN l.deadline_time END, l.action_deadline]) AS due
    FROM leases l WHERE l.phase IN (2, 3) OR l.requested_action <> 0
    UNION ALL
    SELECT unnest(ARRAY[s.expire_time, s.disconnect_time + %(patience)s::interval,
        CASE WHEN NOT s.closed AND s.missed_after IS DISTINCT FROM s.heartbeat_time
            THEN s.heartbeat_time + (s.expire_time - s.heartbeat_time) / 2 END])
    FROM sessions s
    WHERE NOT s.closed OR EXISTS (
        SELECT FROM leases l WHERE l.runner_id = s.runner_id AND l.session_epoch = s.epoch AND l.expire_time IS NULL)
) events

-- name: miss_heartbeats
-- Notes the sessions of which half the time has passed without a heartbeat, once for each heartbeat that was the last, and
-- skips those that a renewal has locked; scans sessions, which are few.
WITH late AS (
    SELECT runner_id, epoch, heartbeat_time FROM sessions
    WHERE NOT closed AND missed_after IS DISTINCT FROM heartbeat_time
        AND heartbeat_time + (expire_time - heartbeat_time) / 2 <= statement_timestamp()
    ORDER BY runner_id LIMIT %(page)s
    FOR UPDATE SKIP LOCKED
)
UPDATE sessions s SET missed_after = late.heartbeat_time FROM late
WHERE s.runner_id = late.runner_id AND s.epoch = late.epoch AND s.heartbeat_time = late.heartbeat_time
RETURNING s.runner_id

-- name: expire_sessions
-- Closes a page of expired sessions and skips those that a renewal has locked; scans sessions, which are few.
WITH expired AS (
    SELECT runner_id, epoch FROM sessions
    WHERE NOT closed AND expire_time <= statement_timestamp()
    ORDER BY runner_id LIMIT %(page)s
    FOR UPDATE SKIP LOCKED
)
UPDATE sessions s SET closed = true FROM expired
WHERE s.runner_id = expired.runner_id AND s.epoch = expired.epoch AND s.expire_time <= statement_timestamp()
RETURNING s.runner_id

-- name: delete_fired_timers
-- Deletes timers of tasks that the caller has locked, unless their due time has changed; primary key of timers.
DELETE FROM timers t
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(kinds)s::smallint[], %(due_times)s::timestamptz[])
    AS c (tenant_id, task_id, kind, due_time)
WHERE t.tenant_id = c.tenant_id AND t.task_id = c.task_id AND t.kind = c.kind AND t.due_time = c.due_time

-- name: next_timer
-- Locks nothing: in how many seconds the next timer is due; the first entry of timers_by_due_time.
SELECT extract(epoch FROM min(due_time) - statement_timestamp())::float8 FROM timers

-- name: slots_without_holder
-- Locks nothing: slots without a head, or whose head does not hold them (ended, paused, deleted, of another slot), a page
-- in key order; primary keys.
SELECT s.tenant_id, s.slot
FROM slots s
LEFT JOIN tasks t ON t.tenant_id = s.tenant_id AND t.task_id = s.head_task_id
LEFT JOIN leases l ON l.tenant_id = s.tenant_id AND l.task_id = s.head_task_id
WHERE (s.tenant_id, s.slot) > (%(after_tenant)s, %(after_task)s)
    AND NOT coalesce(t.slot = s.slot AND t.end_time IS NULL
        AND (l.task_id IS NOT NULL OR t.phase = 5 OR (t.phase = 1 AND t.pending_reason IN (1, 7))), false)
ORDER BY s.tenant_id, s.slot LIMIT %(page)s

-- name: awaited_slots_without_row
-- Locks nothing: slots that tasks wait for and that have no row; scans tasks_by_slot, which holds live tasks only.
SELECT DISTINCT t.tenant_id, t.live_slot
FROM tasks t
WHERE t.live_slot IS NOT NULL AND t.phase = 1 AND t.pending_reason = 4
    AND NOT EXISTS (SELECT FROM slots s WHERE s.tenant_id = t.tenant_id AND s.slot = t.live_slot)
LIMIT %(page)s

-- name: delete_old_revocations
-- Deletes revocations that every holder has received or will never ask for; the table is small.
DELETE FROM revocations WHERE time < statement_timestamp() - interval '10 minutes'

-- name: delete_old_request_ids
-- Deletes a page of expired request ids; idempotency_keys_by_time.
DELETE FROM idempotency_keys k
USING (
    SELECT tenant_id, method, request_id FROM idempotency_keys
    WHERE create_time < statement_timestamp() - %(age)s::interval
    ORDER BY create_time LIMIT %(page)s
) old
WHERE k.tenant_id = old.tenant_id AND k.method = old.method AND k.request_id = old.request_id

-- name: excess_checkpoints
-- Locks nothing: the next tasks that have checkpoints, and whether they have too many; primary keys.
SELECT c.tenant_id, c.task_id,
    count(*) > 10 OR NOT EXISTS (
        SELECT FROM tasks t WHERE t.tenant_id = c.tenant_id AND t.task_id = c.task_id)
FROM checkpoints c
WHERE (c.tenant_id, c.task_id) > (%(after_tenant)s, %(after_task)s)
GROUP BY c.tenant_id, c.task_id
ORDER BY c.tenant_id, c.task_id LIMIT %(page)s

-- name: trim_checkpoints
-- Deletes all but the newest 10 checkpoints of each task, and all of a deleted task. The task need not be locked, since
-- no checkpoint older than its newest is ever written. Primary keys.
DELETE FROM checkpoints c
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT min(newest.sequence) AS sequence FROM (
        SELECT x.sequence FROM checkpoints x WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id
            AND EXISTS (SELECT FROM tasks t WHERE t.tenant_id = k.tenant_id AND t.task_id = k.task_id)
        ORDER BY x.sequence DESC LIMIT 10
    ) newest
) kept
WHERE c.tenant_id = k.tenant_id AND c.task_id = k.task_id AND c.sequence < coalesce(kept.sequence, 9223372036854775807)
