-- name: doctor_redistribute
-- Lets tasks that lock_tasks has locked and that run on no lease be claimed again; primary keys.
UPDATE tasks t SET phase = 5, pending_reason = 0, ready_time = clock_timestamp(), update_time = clock_timestamp(),
    version = version + 1
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
WHERE t.tenant_id = k.tenant_id AND t.task_id = k.id AND t.phase IN (2, 3) AND t.kind <> 6 AND t.end_time IS NULL
    AND NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = t.tenant_id AND l.task_id = t.task_id)
RETURNING t.tenant_id, t.task_id

-- name: doctor_set_ready
-- Gives locked tasks that can be claimed a time since when; primary key of tasks.
UPDATE tasks t SET ready_time = clock_timestamp()
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
WHERE t.tenant_id = k.tenant_id AND t.task_id = k.id AND t.ready_time IS NULL AND t.end_time IS NULL
    AND (t.phase = 5 OR (t.phase = 1 AND t.pending_reason = 1))

-- name: doctor_enqueue
-- Inserts the queue rows of locked tasks that can be claimed and have none. A statement behind the locks: it sees what a
-- claim or a report has done before. Primary keys.
INSERT INTO queue (class_id, ready_time, priority, has_lease, tenant_id, pinned_runner, task_id)
SELECT t.class_id, t.ready_time, t.priority, l.task_id IS NOT NULL, t.tenant_id, t.pinned_runner, t.task_id
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.id
LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id
WHERE t.end_time IS NULL AND t.kind <> 6 AND CASE WHEN l.task_id IS NULL
        THEN t.phase = 5 OR (t.phase = 1 AND t.pending_reason = 1)
        ELSE l.phase = 5 AND l.requested_action = 0 END
ON CONFLICT DO NOTHING
RETURNING tenant_id, class_id, priority, pinned_runner

-- name: doctor_slots_of
-- Locks nothing: the slots of tasks; primary key.
SELECT DISTINCT t.tenant_id, t.slot
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.id
WHERE t.slot IS NOT NULL

-- name: doctor_logged_versions
-- Locks nothing: the newest versions that the log knows of tasks that the caller has locked; changes_by_resource.
SELECT k.tenant_id, k.id, coalesce((
    SELECT max(c.version) FROM changes c
    WHERE c.tenant_id = k.tenant_id AND c.resource_id = k.id AND c.resource_kind = 1), 0)
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)

-- name: doctor_raise_versions
-- Brings locked tasks and leases to the version that the log has told of; primary keys.
WITH item AS (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[], %(versions)s::bigint[]) AS k (tenant_id, id, version)
), leased AS (
    UPDATE leases l SET version = item.version FROM item
    WHERE l.tenant_id = item.tenant_id AND l.task_id = item.id AND l.version < item.version
)
UPDATE tasks t SET version = item.version FROM item
WHERE t.tenant_id = item.tenant_id AND t.task_id = item.id AND t.version < item.version
    AND NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = t.tenant_id AND l.task_id = t.task_id)

-- name: doctor_lock_webhooks
-- Locks the late webhooks of tasks in the order of their ids; webhooks_by_task. How often each was tried comes back.
SELECT w.id, w.attempt
FROM (SELECT DISTINCT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)) k
JOIN webhooks w ON w.tenant_id = k.tenant_id AND w.task_id = k.id
WHERE w.create_time < statement_timestamp() - interval '1 day'
ORDER BY w.id
FOR UPDATE OF w

-- name: doctor_expedite_webhooks
-- Lets locked webhooks be tried at once; primary key.
UPDATE webhooks SET due_time = statement_timestamp()
WHERE id = ANY (%(ids)s::bigint[]) AND due_time > statement_timestamp()

-- name: doctor_untried_webhooks
-- Locks nothing: webhooks that were neither tried nor put off since, of each task the oldest, before which no other is
-- tried; primary key, webhooks_by_task.
SELECT w.id
FROM unnest(%(ids)s::bigint[], %(attempts)s::integer[]) AS k (id, attempt)
JOIN webhooks w ON w.id = k.id
WHERE w.attempt = k.attempt AND w.due_time <= statement_timestamp() AND NOT EXISTS (
    SELECT FROM webhooks earlier
    WHERE earlier.tenant_id = w.tenant_id AND earlier.task_id = w.task_id AND earlier.id < w.id)
LIMIT 1
