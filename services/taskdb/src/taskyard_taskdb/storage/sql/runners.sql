-- name: runner_scopes
-- Locks nothing; primary key of runners. Also says whether any spec is quarantined; quarantines_open.
SELECT runner_id, scope, delete_time IS NOT NULL, EXISTS (SELECT FROM quarantines WHERE release_time IS NULL)
FROM runners WHERE runner_id = ANY (%(runner_ids)s::text[])

-- name: held_task_types
-- Locks nothing; leases_by_runner, primary key of tasks.
SELECT l.tenant_id, l.task_id, t.task_type
FROM leases l JOIN tasks t ON t.tenant_id = l.tenant_id AND t.task_id = l.task_id
WHERE l.runner_id = ANY (%(runner_ids)s::text[]) AND t.task_type <> ''

-- name: put_runner
-- Locks or makes the row of a runner that says hello; primary keys of runners and sessions. A deleted one begins anew,
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
    s.epoch IS NOT NULL AND NOT s.closed AND s.expire_time > statement_timestamp() AS alive
FROM runners r
LEFT JOIN sessions s ON s.runner_id = r.runner_id
LEFT JOIN runner_counts c ON c.runner_id = r.runner_id
WHERE CASE WHEN %(runner_ids)s::text[] IS NULL THEN r.delete_time IS NULL
    ELSE r.runner_id = ANY (%(runner_ids)s::text[]) END
ORDER BY r.runner_id

-- name: runner_page
-- Locks nothing. The ids of a page of runners; primary key of runners.
SELECT runner_id FROM runners
WHERE runner_id > %(after)s AND (%(deleted)s OR delete_time IS NULL)
ORDER BY runner_id LIMIT %(page)s

-- name: runner_tasks
-- Locks nothing. What these runners hold, the oldest first; leases_by_runner.
SELECT l.runner_id, l.tenant_id, l.task_id FROM leases l
WHERE l.runner_id = ANY (%(runner_ids)s::text[]) AND l.phase IN (2, 3)
ORDER BY l.runner_id, coalesce(l.start_time, l.schedule_time), l.tenant_id, l.task_id

-- name: lock_runner
-- Locks a runner that was not deleted; primary key of runners. Before its session (lock order of a hello).
SELECT version, drain, admin_labels FROM runners WHERE runner_id = %(runner_id)s AND delete_time IS NULL FOR UPDATE

-- name: update_runner
-- Writes what an administrator changes of a runner that lock_runner has locked; primary key of runners.
UPDATE runners SET drained_time = CASE WHEN drain IS NOT DISTINCT FROM %(drain)s THEN drained_time END,
    drain = %(drain)s, admin_labels = %(admin_labels)s::jsonb, version = version + 1,
    update_time = statement_timestamp(),
    delete_time = CASE WHEN %(delete)s THEN statement_timestamp() END
WHERE runner_id = %(runner_id)s
RETURNING version

-- name: forget_dead_runners
-- Soft-deletes a page of runners whose session ended long ago and who hold nothing, skipping what says hello meanwhile.
-- Their processes may come back at any time. Sessions are few; primary keys, leases_by_runner.
WITH dead AS (
    SELECT r.runner_id
    FROM runners r JOIN sessions s ON s.runner_id = r.runner_id
    WHERE r.delete_time IS NULL AND greatest(s.expire_time, s.heartbeat_time) <= statement_timestamp() - %(age)s::interval
        AND NOT EXISTS (SELECT FROM leases l WHERE l.runner_id = r.runner_id)
    ORDER BY r.runner_id LIMIT %(page)s
    FOR UPDATE OF r SKIP LOCKED
), closed AS (
    UPDATE sessions s SET closed = true, instance_id = '00000000-0000-0000-0000-000000000000'
    FROM dead WHERE s.runner_id = dead.runner_id AND s.expire_time <= statement_timestamp() - %(age)s::interval
    RETURNING s.runner_id
)
UPDATE runners r SET delete_time = statement_timestamp(), update_time = statement_timestamp(), version = version + 1
FROM closed WHERE r.runner_id = closed.runner_id
RETURNING r.runner_id, r.version, statement_timestamp()

-- name: note_drained
-- Notes which runners hold nothing any more since they are to be drained, a page of them, skipping what says hello
-- meanwhile; runners are few, leases_by_runner.
WITH drained AS (
    SELECT r.runner_id FROM runners r
    WHERE r.drain IS NOT NULL AND r.drained_time IS NULL AND r.delete_time IS NULL
        AND NOT EXISTS (SELECT FROM leases l WHERE l.runner_id = r.runner_id)
    ORDER BY r.runner_id LIMIT %(page)s
    FOR UPDATE OF r SKIP LOCKED
)
UPDATE runners r SET drained_time = statement_timestamp(), update_time = statement_timestamp(), version = version + 1
FROM drained WHERE r.runner_id = drained.runner_id
RETURNING r.runner_id, r.version, statement_timestamp()

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
