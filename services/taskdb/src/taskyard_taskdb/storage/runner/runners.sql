-- name: held_task_types
-- Locks nothing; leases_by_runner, primary key of tasks.
SELECT l.tenant_id, l.task_id, t.task_type
FROM leases l JOIN tasks t ON t.tenant_id = l.tenant_id AND t.task_id = l.task_id
WHERE l.runner_id = ANY (%(runner_ids)s::text[]) AND t.task_type <> ''

-- name: lock_registered
-- Locks the row of a runner, deleted or not, before its session (lock order of a hello); primary key of runners.
SELECT key_id, registration, scope, delete_time IS NOT NULL FROM runners WHERE runner_id = %(runner_id)s
FOR NO KEY UPDATE

-- name: lock_new_runner
-- Serialises those who register a runner id that has no row yet.
SELECT pg_advisory_xact_lock(hashtextextended('runner/' || %(runner_id)s, 0))

-- name: put_runner
-- Locks or inserts the row of a runner that connects; primary keys of runners and sessions. A deleted one begins anew,
-- unless it is the very process that was cut off: that one is not returned.
INSERT INTO runners AS r (runner_id, key_id, backend_type, registration, scope, labels, register_time)
VALUES (%(runner_id)s, %(key_id)s, %(backend_type)s, %(registration)s, %(scope)s::jsonb, %(labels)s::jsonb,
    statement_timestamp())
ON CONFLICT (runner_id) DO UPDATE SET key_id = excluded.key_id, backend_type = excluded.backend_type,
    registration = excluded.registration, scope = excluded.scope, labels = excluded.labels,
    update_time = statement_timestamp(), version = r.version + 1, delete_time = NULL,
    register_time = CASE WHEN r.delete_time IS NULL THEN r.register_time ELSE excluded.register_time END,
    admin_labels = CASE WHEN r.delete_time IS NULL THEN r.admin_labels ELSE '{}' END,
    drain = CASE WHEN r.delete_time IS NULL THEN r.drain END
WHERE r.delete_time IS NULL OR NOT EXISTS (
    SELECT FROM sessions s WHERE s.runner_id = r.runner_id AND s.instance_id = %(instance_id)s)
RETURNING register_time = statement_timestamp()

-- name: register_runners
-- Takes over changed registrations in key order, which callers see to; primary key of runners.
UPDATE runners r
SET registration = i.registration, backend_type = i.backend_type, labels = i.labels::jsonb,
    update_time = statement_timestamp(), version = r.version + 1
FROM unnest(%(runner_ids)s::text[], %(registrations)s::bytea[], %(backend_types)s::text[], %(labels)s::text[])
    AS i (runner_id, registration, backend_type, labels)
WHERE r.runner_id = i.runner_id AND r.delete_time IS NULL

-- name: read_runners
-- Locks nothing. Runners with their sessions, these or, for null, all that were not deleted; primary keys.
SELECT r.runner_id, r.version, r.register_time, r.update_time, r.delete_time, coalesce(c.completed_count, 0),
    coalesce(c.failed_count, 0), r.registration, r.scope, r.labels, r.admin_labels, r.drain, s.session_id,
    s.scheduler_id, s.heartbeat_time, s.used_capacity, s.draining,
    s.epoch IS NOT NULL AND NOT s.closed AND s.expire_time > statement_timestamp() AS alive,
    coalesce(s.stopped, false) AS stopped
FROM runners r
LEFT JOIN sessions s ON s.runner_id = r.runner_id
LEFT JOIN runner_counts c ON c.runner_id = r.runner_id
WHERE CASE WHEN %(runner_ids)s::text[] IS NULL THEN r.delete_time IS NULL
    ELSE r.runner_id = ANY (%(runner_ids)s::text[]) END
ORDER BY r.runner_id

-- name: count_outcomes
-- Adds to the counters of runners, locked in key order behind every other row of the transaction; primary keys of
-- runner_counts and runners. Pull workers that never registered have none.
INSERT INTO runner_counts AS c (completed_count, failed_count, runner_id)
SELECT i.completed, i.failed, i.runner_id
FROM unnest(%(runner_ids)s::text[], %(completed)s::bigint[], %(failed)s::bigint[]) AS i (runner_id, completed, failed)
WHERE EXISTS (SELECT FROM runners WHERE runners.runner_id = i.runner_id)
ORDER BY i.runner_id COLLATE "C"
ON CONFLICT (runner_id) DO UPDATE SET completed_count = c.completed_count + excluded.completed_count,
    failed_count = c.failed_count + excluded.failed_count
