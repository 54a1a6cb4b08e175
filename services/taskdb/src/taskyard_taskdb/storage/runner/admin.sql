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
-- Soft-deletes a page of runners whose session ended long ago and who hold nothing, skipping runners that connect meanwhile.
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
-- Marks draining runners that hold nothing any more, a page of them, skipping runners that connect
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
