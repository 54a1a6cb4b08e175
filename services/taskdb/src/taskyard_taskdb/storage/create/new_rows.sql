-- name: insert_tasks
-- Inserts tasks, queue rows and changes in the order of the arrays, a microsecond apart so that a batch stays FIFO.
-- The only locks that can wait are those of ids that a concurrent transaction inserts; a taken id fails the statement.
-- The log's advisory lock comes first: no other transaction can hold a row of a new task. Tenants with counters are counted,
-- in key order; where there is none at all, nothing is grouped.
WITH log AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(%(log)s)),
input AS MATERIALIZED (
    SELECT i.*, statement_timestamp() - (%(count)s - i.position) * interval '1 microsecond' AS now
    FROM unnest(%(tenant_id)s::text[], %(task_id)s::text[], %(uid)s::uuid[], %(kind)s::smallint[],
        %(class_id)s::bigint[], %(priority)s::smallint[], %(pinned_runner)s::text[], %(task_type)s::text[],
        %(slot)s::text[], %(entity_type)s::text[], %(entity_id)s::text[], %(parent_task_id)s::text[],
        %(creator_type)s::smallint[], %(creator_id)s::text[], %(traceparent)s::text[], %(spec)s::bytea[],
        %(callback)s::bytea[], %(annotations)s::bytea[], %(labels)s::text[], %(task_type_tenant)s::text[], %(group_id)s::text[], %(packed_policy)s::bytea[],
        %(restart)s::smallint[], %(overlap)s::smallint[], %(on_runner_lost)s::smallint[], %(max_retries)s::integer[],
        %(timed)s::boolean[], %(pending_reason)s::smallint[], %(due_time)s::timestamptz[],
        %(total_timeout)s::interval[], %(request_id)s::text[]) WITH ORDINALITY
        AS i (tenant_id, task_id, uid, kind, class_id, priority, pinned_runner, task_type, slot, entity_type, entity_id,
            parent_task_id, creator_type, creator_id, traceparent, spec, callback, annotations, labels,
            task_type_tenant, group_id, policy, restart, overlap, on_runner_lost, max_retries, timed, pending_reason, due_time, total_timeout,
            request_id, position)
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
    FROM log, input
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
SELECT statement_timestamp()

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
