-- name: lock_stats_place
-- Locks the only row; returns no row if another replica has locked it.
SELECT last_id FROM task_stats_place FOR UPDATE SKIP LOCKED;

-- name: fold_changes
-- The caller holds the lock of lock_stats_place, and only that holder writes the statistics. Range scan of changes_by_id,
-- primary key of tasks. A task with several changes in the page counts once, from its first phase to its last: the phase
-- is packed into the lowest eight bits beside the id, so that min and max find it without sorting. A success (8) from
-- SCHEDULED (2) stands for its start as well. Returns the number of changes by event.
WITH page AS MATERIALIZED (
    SELECT id, time, tenant_id, resource_id, event, phase, CASE event WHEN 1 THEN 0 ELSE previous_phase END AS previous_phase
    FROM change_log
    WHERE id > %(after)s AND id <= %(until)s AND resource_kind = 1 AND event <> 23
), moved AS MATERIALIZED (
    SELECT tenant_id, resource_id, (min(id << 8 | previous_phase) & 255)::smallint AS former,
        (max(id << 8 | phase) & 255)::smallint AS phase, count(*) FILTER (WHERE event = 19) AS retries
    FROM page WHERE phase <> previous_phase OR event = 19 GROUP BY tenant_id, resource_id
), task AS MATERIALIZED (
    SELECT m.former, m.phase, m.retries, t.tenant_id, t.task_type, t.attempt, t.end_time,
        to_timestamp(floor(extract(epoch FROM t.create_time) / 900) * 900) AS quarter,
        CASE WHEN m.phase = 10 AND m.former <> 10 THEN extract(epoch FROM t.end_time - t.start_time)::float8 END AS ran,
        CASE WHEN m.phase > 10 AND m.former < 10 THEN extract(epoch FROM t.end_time - t.start_time)::float8 END AS failed,
        CASE WHEN m.phase >= 10 AND m.former < 10 AND t.attempt = 1
            THEN extract(epoch FROM t.start_time - t.create_time)::float8 END AS waited
    FROM moved m
    CROSS JOIN LATERAL (
        SELECT tenant_id, task_type, attempt, create_time, start_time, end_time FROM tasks
        WHERE tenant_id = m.tenant_id AND task_id = m.resource_id OFFSET 0) t
), counted AS (
    INSERT INTO task_counts AS c (quarter, phase, task_count, retry_count, tenant_id, task_type)
    SELECT k.quarter, step.phase, sum(step.step), sum(step.retries), k.tenant_id, k.task_type
    FROM task k
    CROSS JOIN LATERAL (
        SELECT k.phase, 1 AS step, k.retries
        UNION ALL
        SELECT k.former, -1, 0 WHERE k.former > 0) step
    GROUP BY k.quarter, step.phase, k.tenant_id, k.task_type
    ON CONFLICT (tenant_id, quarter, task_type, phase) DO UPDATE
    SET task_count = c.task_count + excluded.task_count, retry_count = c.retry_count + excluded.retry_count
), timed AS (
    INSERT INTO task_durations AS d (quarter, kind, step, task_count, seconds, longest, tenant_id, task_type)
    SELECT k.quarter, took.kind, floor(4 * ln(greatest(took.seconds * 1000, 1)) / ln(2::float8)), count(*),
        sum(took.seconds), max(took.seconds), k.tenant_id, k.task_type
    FROM task k
    CROSS JOIN LATERAL (VALUES (1, k.ran), (2, k.waited), (3, k.failed)) took (kind, seconds)
    WHERE took.seconds >= 0
    GROUP BY k.quarter, took.kind, 3, k.tenant_id, k.task_type
    ON CONFLICT (tenant_id, quarter, task_type, kind, step) DO UPDATE
    SET task_count = d.task_count + excluded.task_count, seconds = d.seconds + excluded.seconds,
        longest = greatest(d.longest, excluded.longest)
), charted AS (
    INSERT INTO task_minutes AS m (minute, created, started, succeeded, failed, retried, waited, waited_seconds, tenant_id)
    SELECT minute, sum(created), sum(started), sum(succeeded), sum(failed), sum(retried), sum(waited), sum(seconds), tenant_id
    FROM (
        SELECT date_trunc('minute', time) AS minute, tenant_id, count(*) FILTER (WHERE event = 1) AS created,
            count(*) FILTER (WHERE event = 3 OR event = 8 AND previous_phase = 2) AS started, count(*) FILTER (WHERE event = 8) AS succeeded,
            count(*) FILTER (WHERE event BETWEEN 9 AND 12) AS failed, count(*) FILTER (WHERE event = 19) AS retried,
            0::bigint AS waited, 0::float8 AS seconds
        FROM page GROUP BY 1, 2
        UNION ALL
        SELECT date_trunc('minute', end_time), tenant_id, 0, 0, 0, 0, 0, count(*), sum(waited)
        FROM task WHERE waited >= 0 GROUP BY 1, 2) happened
    GROUP BY minute, tenant_id
    ON CONFLICT (tenant_id, minute) DO UPDATE
    SET created = m.created + excluded.created, started = m.started + excluded.started,
        succeeded = m.succeeded + excluded.succeeded, failed = m.failed + excluded.failed,
        retried = m.retried + excluded.retried, waited = m.waited + excluded.waited,
        waited_seconds = m.waited_seconds + excluded.waited_seconds
), placed AS (
    UPDATE task_stats_place SET last_id = %(until)s, fold_time = clock_timestamp()
)
SELECT event, sum(count)::bigint FROM (
    SELECT event, count(*) FROM page GROUP BY event
    UNION ALL
    SELECT 3, count(*) FROM page WHERE event = 8 AND previous_phase = 2) happened
WHERE count > 0 GROUP BY event;

-- name: delete_old_minutes
-- Locks the rows that it deletes. task_minutes_by_minute.
DELETE FROM task_minutes WHERE minute < statement_timestamp() - interval '2 days';

-- name: read_minutes
-- No lock. task_minutes by its primary key, or task_minutes_by_minute.
SELECT minute, sum(created)::bigint, sum(started)::bigint, sum(succeeded)::bigint, sum(failed)::bigint,
    sum(retried)::bigint, sum(waited)::bigint, sum(waited_seconds)::float8
FROM task_minutes
WHERE minute >= %(start)s AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
GROUP BY minute ORDER BY minute;

-- name: delete_old_counts
-- Locks the rows that it deletes. task_counts_by_quarter.
DELETE FROM task_counts WHERE quarter < %(before)s;

-- name: delete_old_durations
-- Locks the rows that it deletes. task_durations_by_quarter.
DELETE FROM task_durations WHERE quarter < %(before)s;

-- name: stats_time
-- No lock. The only row.
SELECT fold_time FROM task_stats_place;

-- name: read_counts
-- No lock. task_counts by its primary key or task_counts_by_quarter.
SELECT CASE WHEN %(by_tenant)s THEN tenant_id ELSE '' END, CASE WHEN %(by_type)s THEN task_type ELSE '' END, phase,
    sum(task_count)::bigint, sum(retry_count)::bigint
FROM task_counts
WHERE quarter >= %(start)s AND quarter < %(end)s AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
GROUP BY 1, 2, phase;

-- name: read_durations
-- No lock. task_durations by its primary key or task_durations_by_quarter.
SELECT CASE WHEN %(by_tenant)s THEN tenant_id ELSE '' END, CASE WHEN %(by_type)s THEN task_type ELSE '' END, kind, step,
    sum(task_count)::bigint, sum(seconds)::float8, max(longest)::float8
FROM task_durations
WHERE quarter >= %(start)s AND quarter < %(end)s AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
GROUP BY 1, 2, kind, step;

-- name: oldest_pending
-- No lock. tasks_by_creation from the oldest live task on: as far as the first task that waits. The subquery is
-- evaluated once; the function by itself would be called for every row that a bitmap scan rechecks.
SELECT extract(epoch FROM clock_timestamp() - t.create_time)::float8
FROM tasks t
WHERE t.tenant_id = %(tenant)s AND t.create_time >= (SELECT oldest_live(%(tenant)s)) AND t.end_time IS NULL AND t.phase = 1
    AND (%(type)s::text IS NULL OR t.task_type = %(type)s)
    AND NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = t.tenant_id AND l.task_id = t.task_id)
ORDER BY t.create_time LIMIT 1;

-- name: oldest_pending_of_all
-- No lock. Like oldest_pending, for each tenant.
SELECT extract(epoch FROM clock_timestamp() - min(o.create_time))::float8
FROM tenants n
CROSS JOIN LATERAL (SELECT oldest_live(n.tenant_id) AS time OFFSET 0) live
CROSS JOIN LATERAL (
    SELECT t.create_time FROM tasks t
    WHERE t.tenant_id = n.tenant_id AND t.create_time >= live.time AND t.end_time IS NULL AND t.phase = 1
        AND (%(type)s::text IS NULL OR t.task_type = %(type)s)
        AND NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = t.tenant_id AND l.task_id = t.task_id)
    ORDER BY t.create_time LIMIT 1) o;
