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
    scheduler_id = excluded.scheduler_id, disconnect_time = NULL, closed = false, stopped = false, draining = false,
    free_resources = NULL
WHERE s.epoch = excluded.epoch - 1

-- name: leases_of_runner
-- Locks nothing: the tasks that a runner holds by record; leases_by_runner.
SELECT tenant_id, task_id FROM leases WHERE runner_id = %(runner_id)s

-- name: disconnect_session
-- Notes that the stream of a session broke, guarded by its epoch; primary key of sessions.
UPDATE sessions SET disconnect_time = statement_timestamp()
WHERE runner_id = %(runner_id)s AND epoch = %(epoch)s AND NOT closed

-- name: close_session
-- Ends the session that lock_session has locked, guarded by its epoch. What is released ends at once, the rest lives
-- until the recorded expiry.
UPDATE sessions SET closed = true, stopped = true,
    expire_time = CASE WHEN %(release)s THEN least(expire_time, statement_timestamp()) ELSE expire_time END
WHERE runner_id = %(runner_id)s AND epoch = %(epoch)s
