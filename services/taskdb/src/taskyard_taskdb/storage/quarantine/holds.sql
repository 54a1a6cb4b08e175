-- name: release_quarantine
-- Releases a spec; primary key of quarantines. Returns whether it was quarantined, and no row if it never was.
WITH found AS (
    SELECT tenant_id, digest, release_time FROM quarantines
    WHERE tenant_id = %(tenant_id)s AND digest = %(digest)s FOR UPDATE
)
UPDATE quarantines q SET release_time = coalesce(found.release_time, statement_timestamp())
FROM found WHERE q.tenant_id = found.tenant_id AND q.digest = found.digest
RETURNING found.release_time IS NULL

-- name: queued_specs
-- Locks nothing: queued tasks of a type, a page by id; primary keys of queue (by tenant) and tasks.
SELECT q.task_id, t.spec
FROM queue q JOIN tasks t ON t.tenant_id = q.tenant_id AND t.task_id = q.task_id
WHERE q.tenant_id = %(tenant_id)s AND t.task_type = %(task_type)s AND q.task_id > %(after)s
ORDER BY q.task_id LIMIT %(page)s

-- name: suspect_specs
-- Locks nothing: those of the tasks whose type has quarantined specs, with the digests of these; primary key of tasks,
-- quarantines_open.
SELECT t.tenant_id, t.task_id, t.spec, q.digests
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id OFFSET 0
) t
CROSS JOIN LATERAL (
    SELECT array_agg(quarantines.digest) AS digests FROM quarantines
    WHERE quarantines.tenant_id = t.tenant_id AND quarantines.task_type = t.task_type
        AND quarantines.release_time IS NULL
) q
WHERE q.digests IS NOT NULL

-- name: lock_quarantine
-- Share-locks the row of a quarantined spec, so that it is not released before this transaction ends; primary key of
-- quarantines.
SELECT FROM quarantines
WHERE tenant_id = %(tenant_id)s AND digest = %(digest)s AND release_time IS NULL
FOR SHARE

-- name: hold_tasks
-- Records which tasks were paused for a quarantine; primary key of quarantine_holds.
INSERT INTO quarantine_holds (tenant_id, digest, task_id)
SELECT %(tenant_id)s, %(digest)s, task_id FROM unnest(%(task_ids)s::text[]) AS k (task_id)
ON CONFLICT DO NOTHING

-- name: release_holds
-- Deletes and returns the tasks that were paused for a quarantine; primary key of quarantine_holds.
DELETE FROM quarantine_holds WHERE tenant_id = %(tenant_id)s AND digest = %(digest)s RETURNING task_id
