-- name: runner_scopes
-- Locks nothing; primary key of runners.
SELECT runner_id, scope, delete_time IS NOT NULL FROM runners WHERE runner_id = ANY (%(runner_ids)s::text[])

-- name: held_task_types
-- Locks nothing; leases_by_claim, primary key of tasks.
SELECT l.tenant_id, l.task_id, t.task_type
FROM leases l JOIN tasks t ON t.tenant_id = l.tenant_id AND t.task_id = l.task_id
WHERE l.runner_id = ANY (%(runner_ids)s::text[]) AND t.task_type <> ''

-- name: put_runner
-- Locks or makes the row of a runner that says hello; primary key of runners. A deleted one is not returned.
INSERT INTO runners AS r (runner_id, key_id, backend_type, registration, scope, labels)
VALUES (%(runner_id)s, %(key_id)s, %(backend_type)s, %(registration)s, %(scope)s::jsonb, %(labels)s::jsonb)
ON CONFLICT (runner_id) DO UPDATE SET key_id = excluded.key_id, backend_type = excluded.backend_type,
    registration = excluded.registration, scope = excluded.scope, labels = excluded.labels,
    update_time = statement_timestamp(), version = r.version + 1
WHERE r.delete_time IS NULL
RETURNING version

-- name: register_runners
-- Takes over changed registrations in key order, which callers see to; primary key of runners.
UPDATE runners r
SET registration = i.registration, backend_type = i.backend_type,
    labels = i.labels::jsonb || coalesce(r.scope -> 'labels', '{}'::jsonb) || r.admin_labels,
    update_time = statement_timestamp(), version = r.version + 1
FROM unnest(%(runner_ids)s::text[], %(registrations)s::bytea[], %(backend_types)s::text[], %(labels)s::text[])
    AS i (runner_id, registration, backend_type, labels)
WHERE r.runner_id = i.runner_id AND r.delete_time IS NULL

-- name: read_runners
-- Locks nothing. Runners with their sessions, these or, for null, all that were not deleted; primary keys.
SELECT r.runner_id, r.version, r.register_time, r.update_time, r.delete_time, r.completed_count, r.failed_count,
    r.registration, r.scope, r.labels, r.admin_labels, r.drain, s.session_id, s.scheduler_id, s.heartbeat_time,
    s.used_capacity, s.draining,
    s.epoch IS NOT NULL AND NOT s.closed AND s.expire_time > statement_timestamp() AS alive
FROM runners r
LEFT JOIN sessions s ON s.runner_id = r.runner_id
WHERE CASE WHEN %(runner_ids)s::text[] IS NULL THEN r.delete_time IS NULL
    ELSE r.runner_id = ANY (%(runner_ids)s::text[]) END
ORDER BY r.runner_id
