-- name: retention_page
-- Locks nothing: those of the next tasks in key order whose retention is over, and the last task scanned. Primary key
-- of tasks, so that ending a task maintains no index for it. `policy` has the retention in microseconds.
WITH seen AS MATERIALIZED (
    SELECT t.tenant_id, t.task_id, t.version, t.end_time, t.task_type, t.task_type_tenant,
        coalesce((convert_from(t.policy, 'UTF8')::jsonb ->> 'retention')::bigint * interval '1 microsecond',
            %(retention)s::interval) AS retention
    FROM tasks t
    WHERE (t.tenant_id, t.task_id) > (%(after_tenant)s, %(after_task)s)
    ORDER BY t.tenant_id, t.task_id
    LIMIT %(page)s
), checked AS (
    SELECT *, coalesce(retention > interval '0' AND end_time + retention <= statement_timestamp(), false) AS due,
        row_number() OVER (ORDER BY tenant_id, task_id) = count(*) OVER () AS last
    FROM seen
)
SELECT tenant_id, task_id, version, end_time, task_type, task_type_tenant, due FROM checked WHERE due OR last
ORDER BY tenant_id, task_id

-- name: lock_ended
-- Locks ended tasks in key order; a task that was retried, edited or deleted since it was read is left out.
-- Primary key of tasks.
SELECT t.tenant_id, t.task_id
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(versions)s::bigint[],
        %(end_times)s::timestamptz[]) AS k (tenant_id, task_id, version, end_time)
    ORDER BY k.tenant_id COLLATE "C", k.task_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM tasks
    WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id AND tasks.version = k.version
        AND tasks.end_time = k.end_time
    FOR UPDATE
) t

-- name: log_archived
-- Appends a change for each task that this transaction has moved, under the lock of lock_log. No row lock; primary keys
-- of the archive's partitions.
INSERT INTO changes (id, time, version, generation, attempt, retry_count, runner_loss_count, exit_code, resource_kind,
    event, actor_type, phase, previous_phase, tenant_id, resource_id, actor_id, runner_id, error_code)
SELECT nextval('changes_id'), statement_timestamp(), a.version, nullif(a.generation, 0), nullif(a.attempt, 0),
    nullif(a.retry_count, 0), nullif(a.runner_loss_count, 0), a.exit_code, %(kind)s::smallint, %(event)s::smallint,
    %(actor_type)s::smallint, a.phase, a.phase, a.tenant_id, a.task_id, %(actor_id)s, a.last_runner_id, a.error_code
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(end_times)s::timestamptz[])
    AS k (tenant_id, task_id, end_time)
CROSS JOIN LATERAL (
    SELECT * FROM tasks_archive t
    WHERE t.tenant_id = k.tenant_id AND t.task_id = k.task_id AND t.end_time = k.end_time
    OFFSET 0
) a

-- name: months_of_runs
-- Locks nothing: the months in which the tasks' runs ended. A task whose only run is stored in its own row has none.
-- Primary key of runs.
SELECT DISTINCT date_trunc('month', r.end_time, 'UTC')
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
JOIN runs r ON r.tenant_id = k.tenant_id AND r.task_id = k.task_id

-- name: archived_runs
-- Locks nothing; primary keys of the archive's partitions. A task that succeeded at once stores its run in its own row.
(
    SELECT r.generation, r.attempt, r.runner_id, r.state, r.schedule_time, r.start_time, r.end_time, r.exit_code,
        r.error, r.progress, r.start_checkpoint, r.task_type_revision
    FROM runs_archive r
    WHERE r.tenant_id = %(tenant_id)s AND r.task_id = %(task_id)s AND r.generation < %(before)s
    UNION ALL
    SELECT t.generation, t.attempt, t.last_runner_id, 3::smallint, t.schedule_time, t.start_time, t.end_time,
        t.exit_code, t.error, t.progress, coalesce(t.run_start_checkpoint, 0), t.task_type_revision
    FROM tasks_archive t
    WHERE t.tenant_id = %(tenant_id)s AND t.task_id = %(task_id)s AND t.generation < %(before)s
        AND t.run_lease_id IS NOT NULL
)
ORDER BY generation DESC
LIMIT %(limit)s

-- name: delete_archived
-- Deletes an archived task with its runs and logs; primary keys of the archive's partitions, logs_by_task. Returns
-- the newest version.
WITH deleted AS (
    DELETE FROM tasks_archive t WHERE t.tenant_id = %(tenant_id)s AND t.task_id = %(task_id)s
    RETURNING t.version, t.phase
), deleted_runs AS (
    DELETE FROM runs_archive r WHERE r.tenant_id = %(tenant_id)s AND r.task_id = %(task_id)s
), deleted_logs AS (
    DELETE FROM logs l
    WHERE l.tenant_id = %(tenant_id)s AND l.task_id = %(task_id)s
        AND NOT EXISTS (SELECT FROM tasks t WHERE t.tenant_id = l.tenant_id AND t.task_id = l.task_id)
)
SELECT version, phase FROM deleted ORDER BY version DESC LIMIT 1

-- name: types_to_archive
-- Locks nothing; primary key of task_types.
SELECT t.tenant_id, t.task_type, t.archive
FROM unnest(%(tenant_ids)s::text[], %(task_types)s::text[]) AS k (tenant_id, task_type)
JOIN task_types t ON t.tenant_id = k.tenant_id AND t.task_type = k.task_type
