CREATE FUNCTION complete_runs_v1(
    log_lock bigint, tenant_ids text[], task_ids text, generations bigint[], lease_ids bigint[], runner_ids text[],
    start_times timestamptz[], end_times timestamptz[], results bytea[], exit_codes integer[], checkpoints bigint[],
    log_sequences bigint[]
) RETURNS TABLE (
    refused integer[], used_tenants text[], used_counts bigint[], used_seconds float8[], counted_tenants text[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    clock timestamptz := statement_timestamp();
    ended_count bigint;
    finished_count bigint;
BEGIN
    -- A lease that another transaction has locked is waited for. Rows are named by their place, so that no plan ever
    -- joins the arrays with a whole table. The counters of limited tenants and of runners follow, then the log: those who wait
    -- for its lock wait for no row.
    WITH item AS (
        SELECT *, clock AS now
        FROM unnest(tenant_ids, string_to_array(task_ids, '/'), generations, lease_ids, runner_ids, start_times,
                end_times, results, exit_codes, checkpoints, log_sequences)
            WITH ORDINALITY AS i (tenant_id, task_id, generation, lease_id, runner_id, start_time, end_time, result,
                exit_code, start_checkpoint, log_sequence, n)
    ), ended AS (
        DELETE FROM leases l USING item i
        CROSS JOIN LATERAL (
            SELECT leases.ctid AS at FROM leases
            WHERE leases.tenant_id = i.tenant_id AND leases.task_id = i.task_id
            OFFSET 0
        ) x
        WHERE l.ctid = x.at AND l.generation = i.generation AND l.lease_id = i.lease_id
            AND l.runner_id IS NOT DISTINCT FROM i.runner_id
            AND l.plain AND l.requested_action = 0 AND l.phase = 2 AND NOT l.timed AND l.slot IS NULL
        RETURNING i.n, i.now, l.tenant_id, l.task_id, l.generation, l.lease_id, l.runner_id, l.version, l.attempt,
            l.schedule_time, least(greatest(i.start_time, l.schedule_time), i.now) AS start_time,
            i.start_time AS began, i.end_time, i.start_checkpoint, l.task_type_revision, l.progress, l.details,
            i.result, i.exit_code, i.log_sequence
    ), finished AS (
        UPDATE tasks t
        SET phase = 10, pending_reason = 0, version = e.version + 2, generation = e.generation,
            attempt = e.attempt + 1, update_time = e.now, schedule_time = e.schedule_time, start_time = e.start_time,
            end_time = least(greatest(e.end_time, e.start_time), e.now), next_attempt_time = NULL,
            result = e.result, exit_code = coalesce(e.exit_code, t.exit_code), error = NULL, error_code = NULL,
            last_runner_id = e.runner_id, progress = e.progress, details = coalesce(e.details, t.details),
            run_lease_id = CASE e.generation WHEN 1 THEN e.lease_id END, task_type_revision = e.task_type_revision,
            run_start_checkpoint = nullif(e.start_checkpoint, 0), run_log_sequence = e.log_sequence
        FROM ended e
        CROSS JOIN LATERAL (
            SELECT tasks.ctid AS at FROM tasks WHERE tasks.tenant_id = e.tenant_id AND tasks.task_id = e.task_id
            OFFSET 0
        ) x
        WHERE t.ctid = x.at AND t.end_time IS NULL
        RETURNING e.*, t.end_time AS ended, t.retry_count, t.runner_loss_count,
            extract(epoch FROM least(greatest(e.end_time - e.began, interval '0'), e.now - e.schedule_time))::float8
                AS seconds
    ), recorded AS (
        INSERT INTO runs (generation, lease_id, schedule_time, start_time, end_time, task_type_revision,
            start_checkpoint, attempt, exit_code, state, tenant_id, task_id, runner_id, progress, log_sequence)
        SELECT generation, lease_id, schedule_time, start_time, ended, task_type_revision,
            coalesce(start_checkpoint, 0), attempt + 1, exit_code, 3, tenant_id, task_id, runner_id, progress,
            log_sequence
        FROM finished WHERE generation > 1
    ), used AS MATERIALIZED (
        SELECT tenant_id, count(*), sum(seconds) AS seconds FROM finished GROUP BY tenant_id ORDER BY tenant_id
    ), counted AS (
        UPDATE tenant_counters c SET leased = c.leased - u.count
        FROM used u
        CROSS JOIN LATERAL (
            SELECT FROM tenant_counters WHERE tenant_counters.tenant_id = u.tenant_id FOR UPDATE
        ) l
        WHERE c.tenant_id = u.tenant_id
        RETURNING c.tenant_id
    ), tallied AS (
        INSERT INTO runner_counts AS c (completed_count, failed_count, runner_id)
        SELECT r.count, 0, r.runner_id
        FROM (SELECT runner_id, count(*) FROM finished GROUP BY runner_id) r
        WHERE EXISTS (SELECT FROM runners WHERE runners.runner_id = r.runner_id)
            AND (SELECT count(*) FROM counted) >= 0
        ORDER BY r.runner_id
        ON CONFLICT (runner_id) DO UPDATE SET completed_count = c.completed_count + excluded.completed_count
        RETURNING runner_id
    ), log AS MATERIALIZED (
        SELECT pg_advisory_xact_lock_shared(log_lock) FROM (SELECT count(*) FROM tallied OFFSET 0) t
    ), logged AS (
        INSERT INTO changes (time, version, generation, attempt, retry_count, runner_loss_count, exit_code, event,
            actor_type, phase, previous_phase, tenant_id, resource_id, actor_id, runner_id)
        SELECT now, version + 2, generation, attempt + 1, nullif(retry_count, 0), nullif(runner_loss_count, 0),
            exit_code, 8::smallint, 2::smallint, 10::smallint, 2::smallint, tenant_id, task_id, runner_id, runner_id
        FROM log, finished
    )
    SELECT e.count, f.count,
        CASE WHEN f.count < cardinality(tenant_ids) THEN (
            SELECT array_agg(left_out.n::integer ORDER BY left_out.n)
            FROM (SELECT generate_series(1, cardinality(tenant_ids)) AS n EXCEPT SELECT n FROM finished) left_out
        ) END,
        u.*, (SELECT array_agg(tenant_id) FROM counted)
    INTO ended_count, finished_count, refused, used_tenants, used_counts, used_seconds, counted_tenants
    FROM (SELECT count(*) FROM ended) e, (SELECT count(*) FROM finished) f,
        (SELECT array_agg(tenant_id), array_agg(count), array_agg(seconds) FROM used) u;
    IF finished_count < ended_count THEN
        RAISE EXCEPTION 'a task that had ended still had a lease' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN NEXT;
END
$$
