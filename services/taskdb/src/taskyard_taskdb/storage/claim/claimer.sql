-- name: claim_tasks
-- What locks and which indexes serve is described with the function; it commits by itself.
SELECT * FROM claim_tasks_v1(%(claim_id)s::text, %(scheduler_id)s::text, %(log_lock)s::bigint, %(max_bytes)s::bigint,
    %(runner_ids)s::text[], %(epochs)s::bigint[], %(lease_durations)s::interval[], %(tenant_ids)s::text[],
    %(class_ids)s::bigint[], %(priorities)s::smallint[], %(pinned_runners)s::text[], %(after_times)s::timestamptz[],
    %(offsets)s::interval[], %(bundles)s::integer[], %(counts)s::integer[], %(pages)s::integer[],
    %(seats)s::integer[], %(seat_starts)s::integer[], %(seat_claims)s::integer[], %(lease_ids)s::bigint[])

-- name: lock_claiming_sessions
-- First serialises repeats of one request, then share-locks sessions in key order: a session that is superseded, closed
-- or expired, or whose runner was deleted, is not returned, and none that is returned ends before the claim commits.
-- Also returns whether any tenant has limits, and whether any spec is quarantined. Primary keys of sessions and runners,
-- quarantines_open.
SELECT i.n, r.scope, EXISTS (SELECT FROM tenant_counters),
    EXISTS (SELECT FROM quarantines WHERE quarantines.release_time IS NULL)
FROM (SELECT pg_advisory_xact_lock(hashtextextended(%(request_id)s, 0)) OFFSET 0) repeats
CROSS JOIN (
    SELECT * FROM unnest(%(runner_ids)s::text[], %(epochs)s::bigint[]) WITH ORDINALITY AS i (runner_id, epoch, n)
    ORDER BY i.runner_id COLLATE "C"
) i
CROSS JOIN LATERAL (
    SELECT FROM sessions
    WHERE sessions.runner_id = i.runner_id AND sessions.epoch = i.epoch AND NOT sessions.closed
        AND sessions.expire_time > statement_timestamp()
    FOR SHARE
) s
CROSS JOIN LATERAL (
    SELECT runners.scope FROM runners
    WHERE runners.runner_id = i.runner_id AND runners.delete_time IS NULL
    OFFSET 0
) r

-- name: find_repeated_claims
-- Locks nothing: what runners still hold of an earlier call with this request id; leases_by_runner. The caller has
-- serialised repeats in a statement before.
SELECT i.n, l.tenant_id, l.task_id, l.lease_id, l.generation, l.attempt, t.spec, t.labels,
    t.total_deadline - statement_timestamp() AS total_left, t.traceparent, t.checkpoint_sequence,
    l.task_type_revision, t.task_type, t.task_type_tenant,
    greatest(coalesce(l.expire_time, s.expire_time) - statement_timestamp(), interval '0') AS lease_left
FROM unnest(%(runner_ids)s::text[]) WITH ORDINALITY AS i (runner_id, n)
CROSS JOIN LATERAL (
    SELECT * FROM leases
    WHERE leases.runner_id = i.runner_id AND leases.claim_request_id = %(request_id)s
    OFFSET 0
) l
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = l.tenant_id AND tasks.task_id = l.task_id OFFSET 0
) t
LEFT JOIN sessions s ON s.runner_id = l.runner_id AND s.epoch = l.session_epoch
ORDER BY i.n, l.schedule_time, l.tenant_id, l.task_id

-- name: find_candidates
-- Locks nothing. Reads the head of each lane by the primary key of queue, beginning after the lane's bound, so that
-- dead entries of rows that were claimed before are not visited.
SELECT lane.n, q.ready_time, q.task_id
FROM unnest(%(tenant_ids)s::text[], %(class_ids)s::bigint[], %(priorities)s::smallint[], %(pinned_runners)s::text[],
        %(after_times)s::timestamptz[], %(after_ids)s::text[], %(limits)s::integer[])
    WITH ORDINALITY AS lane (tenant_id, class_id, priority, pinned_runner, after_time, after_id, at_most, n)
LEFT JOIN tenants t ON t.tenant_id = lane.tenant_id
CROSS JOIN LATERAL (
    SELECT ready_time, task_id
    FROM queue
    WHERE queue.tenant_id = lane.tenant_id AND queue.class_id = lane.class_id AND queue.priority = lane.priority
        AND queue.pinned_runner = lane.pinned_runner
        AND (queue.ready_time, queue.task_id) > (lane.after_time, lane.after_id)
    ORDER BY ready_time, task_id
    LIMIT lane.at_most
) q
WHERE NOT coalesce(t.suspended OR t.queue_paused, false)
ORDER BY lane.n, q.ready_time, q.task_id

-- name: claim_queue_rows
-- Locks the chosen rows, skipping those another transaction has, and deletes them; primary key of queue.
WITH locked AS MATERIALIZED (
    SELECT q.at, c.n
    FROM unnest(%(tenant_ids)s::text[], %(class_ids)s::bigint[], %(priorities)s::smallint[],
            %(pinned_runners)s::text[], %(ready_times)s::timestamptz[], %(task_ids)s::text[])
        WITH ORDINALITY AS c (tenant_id, class_id, priority, pinned_runner, ready_time, task_id, n)
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM queue
        WHERE queue.tenant_id = c.tenant_id AND queue.class_id = c.class_id AND queue.priority = c.priority
            AND queue.pinned_runner = c.pinned_runner AND queue.ready_time = c.ready_time
            AND queue.task_id = c.task_id
        FOR UPDATE SKIP LOCKED
    ) q
)
DELETE FROM queue USING locked WHERE queue.ctid = locked.at
RETURNING locked.n, queue.has_lease

-- name: end_expired_leases
-- Moves the expired leases of claimed queue rows, which lock_leases has locked in a statement before, to runs as
-- LOST. Primary key of leases.
WITH found AS MATERIALIZED (
    SELECT l.at, c.n
    FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) WITH ORDINALITY AS c (tenant_id, task_id, n)
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM leases
        WHERE leases.tenant_id = c.tenant_id AND leases.task_id = c.task_id OFFSET 0
    ) l
), ended AS (
    DELETE FROM leases USING found WHERE leases.ctid = found.at
    RETURNING found.n, leases.tenant_id, leases.task_id, leases.generation, leases.version, leases.attempt,
        leases.phase, leases.lease_id, leases.schedule_time, leases.start_time, leases.task_type_revision,
        coalesce(leases.start_checkpoint, 0) AS start_checkpoint, leases.runner_id, leases.progress
), recorded AS (
    INSERT INTO runs (generation, lease_id, schedule_time, start_time, end_time, task_type_revision,
        start_checkpoint, attempt, state, tenant_id, task_id, runner_id, progress)
    SELECT generation, lease_id, schedule_time, start_time, statement_timestamp(), task_type_revision,
        start_checkpoint, CASE WHEN start_time IS NULL THEN 0 ELSE attempt END, %(lost)s::smallint, tenant_id, task_id, runner_id, progress
    FROM ended
)
SELECT n, version, generation, attempt, phase FROM ended

-- name: insert_claimed_leases
-- Inserts leases and changes for tasks whose queue rows this transaction has claimed; no other writer touches such a
-- task, so nothing waits. A statement of its own: its snapshot is younger than those locks. Primary key of tasks. What
-- would make the answer larger than a message may be, and what is of a paused type, is left out and not returned.
-- Counters of limited tenants follow.
WITH log AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(%(log_lock)s)
), read AS (
    SELECT c.n, c.tenant_id, c.task_id, c.runner_id, c.session_epoch, c.lease_id, c.lease_duration,
        coalesce(c.old_generation, t.generation) + 1 AS generation,
        coalesce(c.old_version, t.version) + 1 AS version,
        coalesce(c.old_attempt, t.attempt) AS attempt,
        coalesce(c.old_phase, t.phase) AS previous_phase,
        t.spec, t.labels, t.total_deadline, t.traceparent, t.checkpoint_sequence,
        coalesce(y.revision, 0) AS task_type_revision, coalesce(y.queue_paused, false) AS queue_paused,
        t.task_type, t.task_type_tenant, t.overlap, t.on_runner_lost,
        t.plain AND t.has_dependents IS NOT TRUE AND t.group_id IS NULL AND t.limited IS NULL
            AND NOT coalesce(y.checks_result, false) AS plain, t.timed, t.slot, t.retry_count,
        t.runner_loss_count, c.old_generation,
        sum(octet_length(t.spec) + 512) OVER (ROWS UNBOUNDED PRECEDING) AS total_bytes
    FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(runner_ids)s::text[], %(epochs)s::bigint[],
            %(lease_ids)s::bigint[], %(lease_durations)s::interval[], %(old_generations)s::bigint[],
            %(old_versions)s::bigint[], %(old_attempts)s::integer[], %(old_phases)s::smallint[])
        WITH ORDINALITY AS c (tenant_id, task_id, runner_id, session_epoch, lease_id, lease_duration, old_generation,
            old_version, old_attempt, old_phase, n)
    CROSS JOIN LATERAL (
        SELECT * FROM tasks WHERE tasks.tenant_id = c.tenant_id AND tasks.task_id = c.task_id OFFSET 0
    ) t
    LEFT JOIN task_types y ON y.tenant_id = t.task_type_tenant AND y.task_type = t.task_type
), claimed AS MATERIALIZED (
    SELECT * FROM read
    WHERE old_generation IS NOT NULL OR NOT queue_paused AND (total_bytes <= %(max_bytes)s OR n = 1 AND %(alone)s)
), granted AS (
    INSERT INTO leases (generation, lease_id, version, session_epoch, schedule_time, expire_time, task_type_revision,
        attempt, phase, overlap, on_runner_lost, plain, timed, tenant_id, task_id, runner_id, claim_request_id, slot)
    SELECT generation, lease_id, version, session_epoch, statement_timestamp(),
        statement_timestamp() + lease_duration, task_type_revision, attempt,
        %(scheduled)s::smallint, overlap, on_runner_lost, plain, timed, tenant_id, task_id, runner_id,
        %(request_id)s, slot
    FROM claimed
), logged AS (
    INSERT INTO changes (time, version, generation, attempt, retry_count, runner_loss_count, event, actor_type,
        phase, previous_phase, tenant_id, resource_id, actor_id, runner_id)
    SELECT statement_timestamp(), version, generation, nullif(attempt, 0), nullif(retry_count, 0),
        nullif(runner_loss_count, 0), %(event)s::smallint, %(actor_type)s::smallint, %(scheduled)s::smallint,
        previous_phase, tenant_id, task_id, %(actor_id)s, runner_id
    FROM log, claimed
), counted AS (
    UPDATE tenant_counters c SET pending = c.pending - n.waited, leased = c.leased + n.count
    FROM (
        SELECT tenant_id, count(*), count(*) FILTER (WHERE previous_phase = 1) AS waited FROM claimed
        WHERE old_generation IS NULL AND EXISTS (SELECT FROM tenant_counters)
        GROUP BY 1 ORDER BY 1
    ) n
    CROSS JOIN LATERAL (SELECT FROM tenant_counters x WHERE x.tenant_id = n.tenant_id FOR UPDATE) l
    WHERE c.tenant_id = n.tenant_id
)
SELECT n, generation, attempt, spec, labels, total_deadline - statement_timestamp() AS total_left, traceparent,
    checkpoint_sequence, task_type_revision, task_type, task_type_tenant
FROM claimed

-- name: runner_scopes
-- Locks nothing; primary key of runners. One that drains may claim of no tenant. Also returns whether any spec is
-- quarantined; quarantines_open.
SELECT runner_id, CASE WHEN drain IS NULL THEN scope ELSE '{"tenants": [""]}' END, delete_time IS NOT NULL,
    EXISTS (SELECT FROM quarantines WHERE release_time IS NULL)
FROM runners WHERE runner_id = ANY (%(runner_ids)s::text[])
