-- name: doctor_redistribute
-- Makes locked tasks that run without a lease claimable again; primary keys.
UPDATE tasks t SET phase = 5, pending_reason = 0, ready_time = clock_timestamp(), update_time = clock_timestamp(),
    version = version + 1
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
WHERE t.tenant_id = k.tenant_id AND t.task_id = k.id AND t.phase IN (2, 3) AND t.kind <> 6 AND t.end_time IS NULL
    AND NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = t.tenant_id AND l.task_id = t.task_id)
RETURNING t.tenant_id, t.task_id

-- name: doctor_set_ready
-- Sets the missing ready_time of locked claimable tasks; primary key of tasks.
UPDATE tasks t SET ready_time = clock_timestamp()
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
WHERE t.tenant_id = k.tenant_id AND t.task_id = k.id AND t.ready_time IS NULL AND t.end_time IS NULL
    AND (t.phase = 5 OR (t.phase = 1 AND t.pending_reason = 1))

-- name: doctor_enqueue
-- Inserts the missing queue rows of locked claimable tasks. It runs after the locks were acquired, so it sees the effects
-- of earlier claims and reports. Primary keys.
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
-- Locks nothing: the newest logged versions of tasks that the caller has locked; changes_by_resource.
SELECT k.tenant_id, k.id, coalesce((
    SELECT max(c.version) FROM changes c
    WHERE c.tenant_id = k.tenant_id AND c.resource_id = k.id AND c.resource_kind = 1), 0)
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)

-- name: doctor_raise_versions
-- Raises locked tasks and leases to their newest logged version; primary keys.
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
-- Locks the late webhooks of tasks in the order of their ids; webhooks_by_task. Returns their
-- attempts.
SELECT w.id, w.attempt
FROM (SELECT DISTINCT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)) k
JOIN webhooks w ON w.tenant_id = k.tenant_id AND w.task_id = k.id
WHERE w.create_time < statement_timestamp() - interval '1 day'
ORDER BY w.id
FOR UPDATE OF w

-- name: doctor_expedite_webhooks
-- Makes locked webhooks due now; primary key.
UPDATE webhooks SET due_time = statement_timestamp()
WHERE id = ANY (%(ids)s::bigint[]) AND due_time > statement_timestamp()

-- name: doctor_untried_webhooks
-- Locks nothing: webhooks that were neither tried nor postponed since. Only the oldest of a task counts, since it is sent
-- first. Primary key, webhooks_by_task.
SELECT w.id
FROM unnest(%(ids)s::bigint[], %(attempts)s::integer[]) AS k (id, attempt)
JOIN webhooks w ON w.id = k.id
WHERE w.attempt = k.attempt AND w.due_time <= statement_timestamp() AND NOT EXISTS (
    SELECT FROM webhooks earlier
    WHERE earlier.tenant_id = w.tenant_id AND earlier.task_id = w.task_id AND earlier.id < w.id)
LIMIT 1

-- name: doctor_forget_loops
-- Deletes the failures of loops, which were restarted; primary key of facts.
DELETE FROM facts f USING unnest(%(ids)s::text[]) AS k (id) WHERE f.key = 'loop:' || k.id

-- name: doctor_acknowledgements
-- Locks nothing: the acknowledged ranges of the log, with the fingerprints they had then; changes_audit.
SELECT resource_id, details ->> 'fingerprint' FROM changes
WHERE tenant_id = 'system' AND event = %(event)s::smallint AND resource_id = ANY (%(ranges)s::text[])

-- name: doctor_digest_seals
-- Locks nothing; range scan of the primary key of seals.
SELECT sha256(coalesce(string_agg(record_send(ROW(last_id, after_id, change_count, first_time, last_time, form,
        previous_hash, hash)), ''::bytea ORDER BY last_id), ''::bytea))
FROM seals WHERE last_id > %(after)s AND last_id <= %(until)s

-- name: doctor_lock_groups
-- Locks groups against the leader, who joins them and who waits for them, in key order; primary key of groups.
SELECT FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, group_id)
    ORDER BY k.tenant_id COLLATE "C", k.group_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT FROM groups WHERE groups.tenant_id = k.tenant_id AND groups.group_id = k.group_id FOR UPDATE
) g

-- name: doctor_recount_groups
-- Sets the counts of locked groups so that they are right once the deltas are added; tasks_by_group, group_deltas. One
-- statement sees tasks and deltas of the same moment.
UPDATE groups g SET live_count = c.live - d.live,
    succeeded_count = greatest(g.succeeded_count, c.succeeded - d.succeeded),
    not_succeeded_count = greatest(g.not_succeeded_count, c.not_succeeded - d.not_succeeded),
    complete_time = CASE WHEN c.live > 0 THEN NULL ELSE g.complete_time END,
    close_time = CASE WHEN g.parent_task_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM tasks p
            WHERE p.tenant_id = g.tenant_id AND p.task_id = g.parent_task_id AND p.end_time IS NULL)
        THEN coalesce(g.close_time, clock_timestamp()) ELSE g.close_time END
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, group_id)
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE t.end_time IS NULL) AS live, count(*) FILTER (WHERE t.phase = 10) AS succeeded,
        count(*) FILTER (WHERE t.phase > 10) AS not_succeeded
    FROM tasks t WHERE t.tenant_id = k.tenant_id AND t.group_id = k.group_id
) c
CROSS JOIN LATERAL (
    SELECT coalesce(sum(x.live), 0) AS live, coalesce(sum(x.succeeded), 0) AS succeeded,
        coalesce(sum(x.not_succeeded), 0) AS not_succeeded
    FROM group_deltas x WHERE x.tenant_id = k.tenant_id AND x.group_id = k.group_id
) d
WHERE g.tenant_id = k.tenant_id AND g.group_id = k.group_id
