-- name: dependencies_of
-- Locks nothing: what tasks name in spec.after, which never changes, and the children of their last wait, which have a
-- negative position; dependencies_of_task.
SELECT d.tenant_id, d.task_id, d.prerequisite_id, d.condition, d.alias, d.open, d.position < 0
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM dependencies
    WHERE dependencies.tenant_id = k.tenant_id AND dependencies.task_id = k.task_id
    ORDER BY dependencies.position
) d

-- name: archived_phases
-- Locks nothing: how archived tasks ended, the newest of each id; primary keys of the archive's partitions.
SELECT k.tenant_id, k.task_id, a.phase
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT t.phase FROM tasks_archive t
    WHERE t.tenant_id = k.tenant_id AND t.task_id = k.task_id
    ORDER BY t.end_time DESC LIMIT 1
) a

-- name: mark_prerequisites
-- Marks tasks that the caller has locked or inserted; primary key of tasks.
UPDATE tasks t SET has_dependents = true
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM tasks x WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id OFFSET 0
) x
WHERE t.ctid = x.at

-- name: mark_prerequisite_leases
-- The outcomes of leases that the caller has locked are decided one by one; primary key of leases.
UPDATE leases l SET plain = false
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM leases x WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id OFFSET 0
) x
WHERE l.ctid = x.at AND l.plain

-- name: insert_dependencies
-- Inserts the dependencies of tasks that this transaction has inserted, or that it has locked and that begin to wait; a
-- child that spec.after names as well opens its dependency again. Nothing waits.
INSERT INTO dependencies (tenant_id, task_id, prerequisite_id, condition, position, alias, open)
SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(prerequisite_ids)s::text[],
    %(conditions)s::smallint[], %(positions)s::smallint[], %(aliases)s::text[], %(opens)s::boolean[])
ON CONFLICT (tenant_id, prerequisite_id, task_id) DO UPDATE SET open = excluded.open

-- name: forget_waits
-- Deletes the dependencies that earlier waits of tasks for children have left, whose tasks the caller has locked;
-- dependencies_of_task. An outcome does not write to them, unless the task left its wait before they had ended.
DELETE FROM dependencies d
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE d.tenant_id = k.tenant_id AND d.task_id = k.task_id AND d.position < 0

-- name: reopen_dependencies
-- Sets the dependencies of tasks that the caller has locked, with their prerequisites; primary key of dependencies.
UPDATE dependencies d SET open = k.open
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(prerequisite_ids)s::text[], %(opens)s::boolean[])
    AS k (tenant_id, task_id, prerequisite_id, open)
WHERE d.tenant_id = k.tenant_id AND d.prerequisite_id = k.prerequisite_id AND d.task_id = k.task_id
    AND d.open <> k.open

-- name: set_blocked
-- Sets whether tasks that the caller has locked or inserted are blocked; primary key of tasks.
UPDATE tasks t SET blocked = k.blocked
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(blocked)s::boolean[]) AS k (tenant_id, task_id, blocked)
CROSS JOIN LATERAL (
    SELECT x.ctid AS at FROM tasks x WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id OFFSET 0
) x
WHERE t.ctid = x.at

-- name: block_tasks
-- Inserts what tasks wait for that the caller has locked or inserted; primary key of blocked_tasks.
INSERT INTO blocked_tasks (tenant_id, task_id, open_count, failed_task_id, failed_phase)
SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(open_counts)s::integer[],
    %(failed_ids)s::text[], %(failed_phases)s::smallint[])
ON CONFLICT (tenant_id, task_id) DO UPDATE SET open_count = excluded.open_count,
    failed_task_id = excluded.failed_task_id, failed_phase = excluded.failed_phase

-- name: unblock_tasks
-- Deletes what tasks wait for that the caller has locked; primary key of blocked_tasks. It comes after the locks of
-- tasks, as everywhere.
DELETE FROM blocked_tasks b
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE b.tenant_id = k.tenant_id AND b.task_id = k.task_id

-- name: delete_dependencies
-- Deletes the dependencies of tasks that the caller has locked; dependencies_of_task.
DELETE FROM dependencies d
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
WHERE d.tenant_id = k.tenant_id AND d.task_id = k.task_id
