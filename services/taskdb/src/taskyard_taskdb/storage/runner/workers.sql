-- name: follows_a_session
-- Locks nothing: whether a runner holds leases of an agent's session; leases_by_runner.
SELECT EXISTS (SELECT FROM leases WHERE runner_id = %(runner_id)s AND session_epoch <> 0)

-- name: put_worker_session
-- Inserts the session of a pull worker or renews it, guarded by the lock of lock_session; the ended session of an agent
-- is superseded. No lease follows it. Once it has expired the worker counts as stopped. Primary key of sessions.
INSERT INTO sessions AS s (epoch, open_time, heartbeat_time, expire_time, session_id, instance_id, runner_id, scheduler_id,
    stopped)
VALUES (1, statement_timestamp(), statement_timestamp(), statement_timestamp() + %(duration)s::interval, %(session_id)s,
    %(instance_id)s, %(runner_id)s, %(scheduler_id)s, true)
ON CONFLICT (runner_id) DO UPDATE SET
    epoch = s.epoch + CASE WHEN s.instance_id = excluded.instance_id THEN 0 ELSE 1 END,
    open_time = CASE WHEN %(alive)s THEN s.open_time ELSE excluded.open_time END,
    session_id = CASE WHEN %(alive)s THEN s.session_id ELSE excluded.session_id END,
    expire_time = CASE WHEN %(alive)s THEN greatest(s.expire_time, excluded.expire_time) ELSE excluded.expire_time END,
    heartbeat_time = excluded.heartbeat_time, instance_id = excluded.instance_id, scheduler_id = excluded.scheduler_id,
    used_capacity = 0, disconnect_time = NULL, closed = false, stopped = true, draining = false, free_resources = NULL
