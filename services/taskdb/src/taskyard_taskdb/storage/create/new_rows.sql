-- name: insert_tasks
-- Inserts tasks, queue rows and changes in the order of the arrays, a microsecond apart so that a batch stays FIFO.
-- First it takes the keys that tasks come with, in their order; it waits for a concurrent insert of the same key, then leaves
-- the task out. The positions of the others are returned if any is left out. Behind that the only locks that can wait are
-- those of ids that a concurrent transaction inserts; a taken id fails the statement. The log's advisory lock comes after
-- the keys and before the tasks: no other transaction can hold a row of a new task. Tenants with counters are counted, in
-- key order; where there is none at all, nothing is grouped.
WITH keyed AS (
    INSERT INTO idempotency_keys (tenant_id, method, request_id, task_id, body_hash)
    SELECT k.tenant_id, k.method, k.request_id, k.task_id, k.body_hash
    FROM unnest(%(tenant_id)s::text[], %(method)s::smallint[], %(key)s::text[], %(task_id)s::text[],
        %(body_hash)s::bytea[]) AS k (tenant_id, method, request_id, task_id, body_hash)
    WHERE k.request_id IS NOT NULL
    ORDER BY k.method, k.tenant_id COLLATE "C", k.request_id COLLATE "C"
    ON CONFLICT (tenant_id, method, request_id) DO NOTHING
    RETURNING tenant_id, method, request_id
),
log AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(%(log)s), clock_timestamp() AS time FROM (SELECT count(*) FROM keyed) k
),
input AS MATERIALIZED (
    SELECT i.*, log.time - (%(count)s - i.position) * interval '1 microsecond' AS now
    FROM log, unnest(%(tenant_id)s::text[], %(task_id)s::text[], %(uid)s::uuid[], %(kind)s::smallint[],
        %(class_id)s::bigint[], %(priority)s::smallint[], %(pinned_runner)s::text[], %(task_type)s::text[],
        %(slot)s::text[], %(entity_type)s::text[], %(entity_id)s::text[], %(parent_task_id)s::text[],
        %(creator_type)s::smallint[], %(creator_id)s::text[], %(traceparent)s::text[], %(spec)s::bytea[],
        %(callback)s::bytea[], %(annotations)s::bytea[], %(labels)s::text[], %(task_type_tenant)s::text[], %(group_id)s::text[], %(packed_policy)s::bytea[],
        %(restart)s::smallint[], %(overlap)s::smallint[], %(on_runner_lost)s::smallint[], %(max_retries)s::integer[],
        %(timed)s::boolean[], %(pending_reason)s::smallint[], %(due_time)s::timestamptz[],
        %(total_timeout)s::interval[], %(request_id)s::text[], %(key)s::text[], %(method)s::smallint[])
        WITH ORDINALITY
        AS i (tenant_id, task_id, uid, kind, class_id, priority, pinned_runner, task_type, slot, entity_type, entity_id,
            parent_task_id, creator_type, creator_id, traceparent, spec, callback, annotations, labels,
            task_type_tenant, group_id, policy, restart, overlap, on_runner_lost, max_retries, timed, pending_reason, due_time, total_timeout,
            request_id, key, method, position)
    WHERE i.key IS NULL OR (i.tenant_id, i.method, i.key) IN (SELECT tenant_id, method, request_id FROM keyed)
),
stored AS (
    INSERT INTO tasks (update_time, ready_time, next_attempt_time, phase, pending_reason, class_id, create_time,
        total_deadline, uid, max_retries, kind, priority, creator_type, restart, overlap, on_runner_lost, timed,
        tenant_id, task_id, task_type, task_type_tenant, pinned_runner, slot, entity_type, entity_id, parent_task_id, creator_id,
        traceparent, spec, policy, callback, annotations, labels, group_id)
    SELECT now, CASE pending_reason WHEN 1 THEN now END, due_time, 1, pending_reason, class_id, now,
        now + total_timeout, uid, max_retries, kind, priority, creator_type, restart, overlap, on_runner_lost, timed,
        tenant_id, task_id, task_type, task_type_tenant, pinned_runner, slot, entity_type, entity_id, parent_task_id, creator_id,
        traceparent, spec, policy, callback, annotations, labels::jsonb, group_id
    FROM input
),
queued AS (
    INSERT INTO queue (class_id, ready_time, priority, tenant_id, pinned_runner, task_id)
    SELECT class_id, now, priority, tenant_id, pinned_runner, task_id FROM input WHERE pending_reason = 1
),
logged AS (
    INSERT INTO changes (time, version, next_attempt_time, event, actor_type, phase, pending_reason, tenant_id,
        resource_id, actor_id, request_id)
    SELECT now, 1, due_time, %(event)s, creator_type, 1, pending_reason, tenant_id, task_id, creator_id, request_id
    FROM input
),
counted AS (
    UPDATE tenant_counters c SET pending = c.pending + n.count
    FROM (
        SELECT tenant_id, count(*) FROM input WHERE EXISTS (SELECT FROM tenant_counters)
        GROUP BY 1 ORDER BY 1
    ) n
    CROSS JOIN LATERAL (SELECT FROM tenant_counters x WHERE x.tenant_id = n.tenant_id FOR UPDATE) l
    WHERE c.tenant_id = n.tenant_id
)
SELECT log.time, CASE WHEN (SELECT count(*) FROM input) < %(count)s
    THEN ARRAY(SELECT (position - 1)::integer FROM input) END
FROM log

-- name: copy_tasks
-- As insert_tasks, for large batches; a taken id fails it.
COPY tasks (create_time, update_time, ready_time, task_id, spec, uid, total_deadline, next_attempt_time, phase,
    pending_reason, class_id, max_retries, kind, priority, creator_type, restart, overlap, on_runner_lost, timed, tenant_id,
    task_type, task_type_tenant, pinned_runner, slot, entity_type, entity_id, parent_task_id, creator_id, traceparent, policy,
    callback, annotations, labels, group_id)
FROM STDIN (FORMAT binary)

-- name: copy_queue
-- Appends to lanes; the rows are new, nothing waits.
COPY queue (ready_time, task_id, class_id, priority, tenant_id, pinned_runner) FROM STDIN (FORMAT binary)

-- name: copy_creations
-- Appends in the order of the rows, each drawing its id, under the lock of lock_log. No row lock.
COPY changes (time, resource_id, request_id, next_attempt_time, version, event, actor_type, phase, pending_reason,
    tenant_id, actor_id)
FROM STDIN (FORMAT binary)
