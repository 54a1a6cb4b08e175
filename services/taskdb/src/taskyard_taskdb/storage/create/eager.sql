-- name: insert_eager_tasks
-- As insert_tasks, for tasks without slot, timers, limits, prerequisites and group, some of them with a place on a runner.
-- Keys are taken first and left out as there. Whoever had to wait for one gets no lease: what else the statement reads
-- is as old as its beginning.
-- A task whose place is confirmed gets its lease and the change of a claim instead of a queue row; the others queue. A place
-- is confirmed if the runner's session is alive and can be share-locked at once, so that it does not end before the commit
-- and creates never wait for a heartbeat; if nothing forbids a claim (drain, scope, suspension, pause, counted quota,
-- quarantine); and if no task waits in the lane, in the queue or before it in this statement. Primary keys, quarantines_open.
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
    SELECT i.*, log.time - (%(count)s - i.position) * interval '1 microsecond' AS now,
        log.time < statement_timestamp() + interval '100 milliseconds' AS fresh
    FROM log, unnest(%(tenant_id)s::text[], %(task_id)s::text[], %(uid)s::uuid[], %(kind)s::smallint[],
        %(class_id)s::bigint[], %(priority)s::smallint[], %(task_type)s::text[], %(entity_type)s::text[],
        %(entity_id)s::text[], %(parent_task_id)s::text[], %(creator_type)s::smallint[], %(creator_id)s::text[],
        %(traceparent)s::text[], %(spec)s::bytea[], %(callback)s::bytea[], %(annotations)s::bytea[], %(labels)s::text[],
        %(task_type_tenant)s::text[], %(policy)s::bytea[], %(restart)s::smallint[], %(overlap)s::smallint[],
        %(on_runner_lost)s::smallint[], %(max_retries)s::integer[], %(request_id)s::text[], %(runner_id)s::text[],
        %(session_epoch)s::bigint[], %(lease_id)s::bigint[], %(lease_duration)s::interval[], %(scheduler_id)s::text[],
        %(after_time)s::timestamptz[], %(key)s::text[], %(method)s::smallint[]) WITH ORDINALITY
        AS i (tenant_id, task_id, uid, kind, class_id, priority, task_type, entity_type, entity_id, parent_task_id,
            creator_type, creator_id, traceparent, spec, callback, annotations, labels, task_type_tenant, policy, restart,
            overlap, on_runner_lost, max_retries, request_id, runner_id, session_epoch, lease_id, lease_duration,
            scheduler_id, after_time, key, method, position)
    WHERE i.key IS NULL OR (i.tenant_id, i.method, i.key) IN (SELECT tenant_id, method, request_id FROM keyed)
),
alive AS MATERIALIZED (
    SELECT i.runner_id, i.session_epoch, r.tenants
    FROM (
        SELECT DISTINCT runner_id COLLATE "C" AS runner_id, session_epoch FROM input
        WHERE runner_id IS NOT NULL AND fresh
        ORDER BY 1
    ) i
    CROSS JOIN LATERAL (
        SELECT FROM sessions
        WHERE sessions.runner_id = i.runner_id AND sessions.epoch = i.session_epoch AND NOT sessions.closed
            AND NOT sessions.draining AND sessions.expire_time > statement_timestamp()
        FOR SHARE SKIP LOCKED
    ) s
    CROSS JOIN LATERAL (
        SELECT runners.scope -> 'tenants' AS tenants FROM runners
        WHERE runners.runner_id = i.runner_id AND runners.delete_time IS NULL AND runners.drain IS NULL
        OFFSET 0
    ) r
),
judged AS MATERIALIZED (
    SELECT j.*, bool_and(j.free) OVER (PARTITION BY j.tenant_id, j.class_id, j.priority ORDER BY j.position) AS granted
    FROM (
        SELECT i.*, coalesce(y.revision, 0) AS task_type_revision, coalesce(y.checks_result, false) AS checks_result,
            a.runner_id IS NOT NULL AND coalesce(a.tenants ? i.tenant_id, true)
                AND NOT coalesce(t.suspended OR t.queue_paused, false) AND NOT coalesce(y.queue_paused, false)
                AND NOT EXISTS (SELECT FROM tenant_counters c WHERE c.tenant_id = i.tenant_id)
                AND NOT EXISTS (SELECT FROM quarantines WHERE quarantines.release_time IS NULL)
                AND NOT EXISTS (
                    SELECT FROM queue q
                    WHERE q.tenant_id = i.tenant_id AND q.class_id = i.class_id AND q.priority = i.priority
                        AND q.pinned_runner = '' AND q.ready_time >= i.after_time
                ) AS free
        FROM input i
        LEFT JOIN alive a ON a.runner_id = i.runner_id AND a.session_epoch = i.session_epoch
        LEFT JOIN tenants t ON t.tenant_id = i.tenant_id
        LEFT JOIN task_types y ON y.tenant_id = i.task_type_tenant AND y.task_type = i.task_type
    ) j
),
stored AS (
    INSERT INTO tasks (update_time, ready_time, phase, pending_reason, class_id, create_time, uid, max_retries, kind,
        priority, creator_type, restart, overlap, on_runner_lost, tenant_id, task_id, task_type, task_type_tenant,
        entity_type, entity_id, parent_task_id, creator_id, traceparent, spec, policy, callback, annotations, labels)
    SELECT now, now, 1, 1, class_id, now, uid, max_retries, kind, priority,
        creator_type, restart, overlap, on_runner_lost, tenant_id, task_id, task_type, task_type_tenant, entity_type,
        entity_id, parent_task_id, creator_id, traceparent, spec, policy, callback, annotations, labels::jsonb
    FROM judged
    RETURNING tasks.tenant_id, tasks.task_id, tasks.plain
),
queued AS (
    INSERT INTO queue (class_id, ready_time, priority, tenant_id, task_id)
    SELECT class_id, now, priority, tenant_id, task_id FROM judged WHERE NOT granted
),
leased AS (
    INSERT INTO leases (generation, lease_id, version, session_epoch, schedule_time, expire_time, task_type_revision,
        attempt, phase, overlap, on_runner_lost, plain, tenant_id, task_id, runner_id, claim_request_id)
    SELECT 1, j.lease_id, 2, j.session_epoch, j.now, j.now + j.lease_duration, j.task_type_revision, 0,
        %(scheduled)s::smallint, j.overlap, j.on_runner_lost, s.plain AND NOT j.checks_result, j.tenant_id, j.task_id,
        j.runner_id, ''
    FROM judged j JOIN stored s ON s.tenant_id = j.tenant_id AND s.task_id = j.task_id
    WHERE j.granted
),
logged AS (
    INSERT INTO changes (time, version, generation, event, actor_type, phase, previous_phase, pending_reason, tenant_id,
        resource_id, actor_id, runner_id, request_id)
    SELECT change.* FROM log, (
        SELECT now, 1, NULL::integer, %(created)s::smallint, creator_type, 1::smallint, NULL::smallint, 1::smallint, tenant_id,
            task_id, creator_id, NULL, request_id
        FROM judged
        UNION ALL
        SELECT now, 2, 1, %(scheduled_event)s::smallint, %(actor_type)s::smallint, %(scheduled)s::smallint, 1::smallint,
            NULL, tenant_id, task_id, scheduler_id, runner_id, NULL
        FROM judged WHERE granted
    ) change
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
SELECT position, now, granted, task_type_revision FROM judged ORDER BY position
