-- name: insert_task_type
-- Waits for a concurrent insert of the same id; no row comes back if the id is taken.
WITH made AS (
    INSERT INTO task_types (tenant_id, task_type, description, definition, retention, attempt_timeout,
        checkpoint_interval, max_retries, archive, disabled, queue_paused, checks_result, runner_id_pattern)
    VALUES (%(tenant_id)s, %(task_type)s, %(description)s, %(definition)s, %(retention)s, %(attempt_timeout)s,
        %(checkpoint_interval)s, %(max_retries)s, %(archive)s, %(disabled)s, %(queue_paused)s, %(checks_result)s,
        %(runner_id_pattern)s)
    ON CONFLICT (tenant_id, task_type) DO NOTHING
    RETURNING tenant_id, task_type, revision, version, create_time, update_time, definition
)
SELECT tenant_id, task_type, revision, version, create_time, update_time, definition FROM made

-- name: insert_task_type_revision
-- Keeps a revision; a new row.
INSERT INTO task_type_revisions (tenant_id, task_type, revision, definition) VALUES (%s, %s, %s, %s)

-- name: update_task_type
-- Writes a type that lock_task_type has locked; primary key.
UPDATE task_types
SET description = %(description)s, definition = %(definition)s, retention = %(retention)s,
    attempt_timeout = %(attempt_timeout)s, checkpoint_interval = %(checkpoint_interval)s,
    max_retries = %(max_retries)s, archive = %(archive)s, disabled = %(disabled)s, queue_paused = %(queue_paused)s,
    -- Runs of an earlier revision may still be under way.
    checks_result = checks_result OR %(checks_result)s, runner_id_pattern = %(runner_id_pattern)s, version = version + 1,
    revision = revision + 1, update_time = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND task_type = %(task_type)s
RETURNING tenant_id, task_type, revision, version, create_time, update_time, definition

-- name: read_task_type
-- Reads by primary key, no lock.
SELECT tenant_id, task_type, revision, version, create_time, update_time, definition
FROM task_types WHERE tenant_id = %s AND task_type = %s

-- name: lock_task_type
-- Locks one type by its primary key, and waits.
SELECT tenant_id, task_type, revision, version, create_time, update_time, definition
FROM task_types WHERE tenant_id = %s AND task_type = %s FOR UPDATE

-- name: resolve_task_type
-- Reads by primary key, no lock: the type of the tenant, else the one of "system".
SELECT tenant_id, task_type, revision, version, create_time, update_time, definition
FROM task_types WHERE tenant_id IN (%(tenant_id)s, 'system') AND task_type = %(task_type)s
ORDER BY tenant_id = 'system' LIMIT 1

-- name: list_task_types
-- Locks nothing; a page along the primary key, of one tenant or, for null, of all.
SELECT tenant_id, task_type, revision, version, create_time, update_time, definition
FROM task_types
WHERE (tenant_id, task_type) > (%(after_tenant)s, %(after_type)s)
    AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
ORDER BY tenant_id, task_type LIMIT %(size)s

-- name: delete_task_type
-- Deletes a type that lock_task_type has locked, with its revisions; primary key.
DELETE FROM task_types WHERE tenant_id = %s AND task_type = %s

-- name: count_tasks_of_type
-- Locks nothing. Live tasks that took this type, up to a limit; tasks_by_type from each tenant's oldest live task on.
SELECT count(*) FROM (
    SELECT FROM (VALUES (%s::text, %s::text)) AS y (tenant_id, task_type)
    CROSS JOIN tenants n
    CROSS JOIN LATERAL (
        SELECT FROM tasks t
        WHERE t.tenant_id = n.tenant_id AND t.task_type = y.task_type AND t.task_type <> ''
            AND t.create_time >= oldest_live(n.tenant_id) AND t.task_type_tenant = y.tenant_id AND t.end_time IS NULL
    ) live
    LIMIT 1000
) counted

-- name: read_type_revisions
-- Locks nothing; primary key of task_type_revisions.
SELECT r.tenant_id, r.task_type, r.revision, r.definition
FROM unnest(%(tenant_ids)s::text[], %(task_types)s::text[], %(revisions)s::bigint[]) AS k (tenant_id, task_type, revision)
JOIN task_type_revisions r ON r.tenant_id = k.tenant_id AND r.task_type = k.task_type AND r.revision = k.revision

-- name: checking_tenants
-- Locks nothing; task_types_checking.
SELECT DISTINCT tenant_id FROM task_types WHERE checks_result

-- name: revisions_of_runs
-- Locks nothing: which revision of its type a run has, from its lease or, if its end is reported again, from its ended run;
-- the newest one of an unclaimed task. Primary keys of tasks, task_types, leases and runs.
SELECT k.tenant_id, k.task_id, k.generation, t.task_type_tenant, t.task_type,
    coalesce(l.task_type_revision, r.task_type_revision, nullif(t.task_type_revision, 0), y.revision)::bigint
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[]) AS k (tenant_id, task_id, generation)
JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.task_id
JOIN task_types y ON y.tenant_id = t.task_type_tenant AND y.task_type = t.task_type
LEFT JOIN leases l ON l.tenant_id = k.tenant_id AND l.task_id = k.task_id AND l.generation = k.generation
LEFT JOIN runs r ON r.tenant_id = k.tenant_id AND r.task_id = k.task_id AND r.generation = k.generation

-- name: disabled_types
-- Locks nothing. Which of these tasks are of a type that is disabled; primary keys.
SELECT t.tenant_id, t.task_id, y.tenant_id, y.task_type
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.task_id
JOIN task_types y ON y.tenant_id = t.task_type_tenant AND y.task_type = t.task_type
WHERE y.disabled
