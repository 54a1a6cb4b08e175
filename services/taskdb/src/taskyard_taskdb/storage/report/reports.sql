-- name: complete_plain
-- Success of plain runs, alone or together with their start: deletes the lease under its guard, ends the task and
-- returns the columns of its changes, and the slot it headed. The only run of a task is kept in its row, a later one in runs.
-- A lease that another transaction has locked is waited for; one that has changed since the snapshot is judged as it is
-- now or left to Python. Callers sort by key: the index scans follow the arrays. Slots are locked when all tasks are, in
-- key order, and freed in the next statement; then come the counters of limited tenants, and these tenants are
-- returned. How long each ran comes from the holder's clock if it reported both ends, and at most as long as it was
-- leased. Primary keys.
WITH item AS MATERIALIZED (
    SELECT *, statement_timestamp() AS now
    FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[], %(lease_ids)s::bigint[],
            %(runner_ids)s::text[], %(starts)s::boolean[], %(start_times)s::timestamptz[],
            %(end_times)s::timestamptz[], %(results)s::bytea[], %(exit_codes)s::int[],
            %(checkpoints)s::bigint[], %(log_sequences)s::bigint[])
        WITH ORDINALITY AS i (tenant_id, task_id, generation, lease_id, runner_id, starts, start_time, end_time,
            result, exit_code, start_checkpoint, log_sequence, n)
), ended AS (
    DELETE FROM leases l USING item i
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM leases x WHERE x.tenant_id = i.tenant_id AND x.task_id = i.task_id OFFSET 0
    ) x
    WHERE l.ctid = x.at
        AND l.generation = i.generation AND l.lease_id = i.lease_id AND l.runner_id IS NOT DISTINCT FROM i.runner_id
        AND plain AND requested_action = 0
        AND phase = CASE WHEN i.starts THEN 2 ELSE 3 END
    RETURNING i.n, now, l.tenant_id, l.task_id, l.generation, l.lease_id, l.runner_id, timed, version, i.starts,
        schedule_time,
        CASE WHEN i.starts
            THEN least(greatest(coalesce(i.start_time, now), l.schedule_time), now)
            ELSE l.start_time END AS start_time,
        i.start_time AS began, i.end_time AS told_end, l.attempt + i.starts::int AS attempt,
        CASE WHEN i.starts THEN i.start_checkpoint ELSE coalesce(l.start_checkpoint, 0) END AS start_checkpoint,
        task_type_revision, progress, details, i.result, i.exit_code, i.log_sequence, slot
), closed AS (
    SELECT *, least(greatest(coalesce(told_end, now), start_time), now) AS end_time,
        extract(epoch FROM CASE WHEN starts
            THEN least(greatest(coalesce(told_end - began, now - schedule_time), interval '0'),
                now - schedule_time)
            ELSE now - start_time END)::float8 AS seconds
    FROM ended
), finished AS (
    UPDATE tasks t
    SET phase = 10, pending_reason = 0, version = e.version + 1 + e.starts::int,
        generation = e.generation, attempt = e.attempt, update_time = e.now,
        schedule_time = e.schedule_time, start_time = e.start_time, end_time = e.end_time,
        next_attempt_time = NULL, result = e.result, exit_code = coalesce(e.exit_code, t.exit_code), error = NULL,
        error_code = NULL, last_runner_id = e.runner_id, progress = e.progress,
        details = coalesce(e.details, t.details),
        run_lease_id = CASE e.generation WHEN 1 THEN e.lease_id END, task_type_revision = e.task_type_revision,
        run_start_checkpoint = nullif(e.start_checkpoint, 0), run_log_sequence = e.log_sequence
    FROM closed e
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM tasks x WHERE x.tenant_id = e.tenant_id AND x.task_id = e.task_id OFFSET 0
    ) x
    WHERE t.ctid = x.at AND t.end_time IS NULL
    RETURNING e.*, retry_count, runner_loss_count, run_lease_id
), recorded AS (
    INSERT INTO runs (generation, lease_id, schedule_time, start_time, end_time, task_type_revision,
        start_checkpoint, attempt, exit_code, state, tenant_id, task_id, runner_id, progress, log_sequence)
    SELECT generation, lease_id, schedule_time, start_time, end_time, task_type_revision, start_checkpoint, attempt,
        exit_code, 3, tenant_id, task_id, runner_id, progress, log_sequence
    FROM finished WHERE run_lease_id IS NULL
), held AS MATERIALIZED (
    SELECT k.*, s.head_task_id
    FROM (SELECT * FROM finished WHERE slot IS NOT NULL ORDER BY tenant_id, slot) k
    LEFT JOIN LATERAL (
        SELECT head_task_id FROM slots WHERE slots.tenant_id = k.tenant_id AND slots.slot = k.slot FOR UPDATE
    ) s ON true
), counted AS (
    UPDATE tenant_counters c SET leased = leased - count
    FROM (
        SELECT tenant_id AS id, count(*) FROM finished
        WHERE EXISTS (SELECT FROM tenant_counters) AND (SELECT count(*) FROM held) >= 0 GROUP BY 1 ORDER BY 1
    ) n
    CROSS JOIN LATERAL (SELECT FROM tenant_counters WHERE tenant_id = id FOR UPDATE) l
    WHERE tenant_id = id
    RETURNING tenant_id
)
SELECT done.*, (SELECT count(*) FROM ended), (SELECT array_agg(tenant_id) FROM counted)
FROM (
    SELECT n, timed, now, version, attempt, retry_count, runner_loss_count, seconds, NULL
    FROM finished WHERE slot IS NULL
    UNION ALL
    SELECT n, timed, now, version, attempt, retry_count, runner_loss_count, seconds,
        CASE WHEN head_task_id = task_id THEN slot END
    FROM held
) done

-- name: find_runs
-- Locks nothing: what became of runs that hold no lease any more; primary keys of runs and tasks.
SELECT r.tenant_id, r.task_id, r.generation, r.lease_id, r.runner_id, r.state, r.start_time IS NOT NULL AS started
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[], %(generations)s::bigint[])
    AS k (tenant_id, task_id, generation)
CROSS JOIN LATERAL (
    SELECT * FROM ended_runs e
    WHERE e.tenant_id = k.tenant_id AND e.task_id = k.task_id AND e.generation = k.generation
    OFFSET 0
) r
