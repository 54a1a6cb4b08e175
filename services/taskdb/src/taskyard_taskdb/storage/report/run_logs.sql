-- name: log_positions
-- No lock. Which runs the sender holds, or held until 10 min ago, their span, and how far their logs are stored; primary keys and
-- logs_by_task.
SELECT i.position,
    coalesce(l.generation, r.generation) IS NOT NULL AS held,
    coalesce(l.start_time, r.start_time, l.schedule_time, r.schedule_time) AS earliest, least(r.end_time, now()) AS latest,
    coalesce((SELECT max(g.last_sequence) FROM logs g
        WHERE g.tenant_id = i.tenant_id AND g.task_id = i.task_id AND g.generation = i.generation), 0) AS stored
FROM unnest(%(tenants)s::text[], %(tasks)s::text[], %(generations)s::bigint[], %(lease_ids)s::bigint[])
    WITH ORDINALITY AS i (tenant_id, task_id, generation, lease_id, position)
LEFT JOIN leases l ON l.tenant_id = i.tenant_id AND l.task_id = i.task_id AND l.generation = i.generation
    AND l.lease_id = i.lease_id AND l.runner_id = %(runner)s
LEFT JOIN ended_runs r ON r.tenant_id = i.tenant_id AND r.task_id = i.task_id AND r.generation = i.generation
    AND r.lease_id = i.lease_id AND r.runner_id = %(runner)s AND r.end_time > now() - interval '10 minutes'
ORDER BY i.position;

-- name: insert_logs
-- No lock but that of the rows it makes.
INSERT INTO logs (time, last_time, generation, first_sequence, last_sequence, dropped_count, max_level, tenant_id,
    task_id, entries)
SELECT now(), i.last_time, i.generation, i.first_sequence, i.last_sequence, i.dropped_count, i.max_level, i.tenant_id,
    i.task_id, i.entries
FROM unnest(%(last_times)s::timestamptz[], %(generations)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[],
    %(dropped)s::bigint[], %(levels)s::smallint[], %(tenants)s::text[], %(tasks)s::text[], %(entries)s::bytea[])
    AS i (last_time, generation, first_sequence, last_sequence, dropped_count, max_level, tenant_id, task_id, entries);

-- name: read_logs
-- No lock. Range scan of logs_by_task from the chunk that holds the entry given; chunks up to a number of bytes, or one.
SELECT generation, first_sequence, last_sequence, dropped_count, entries FROM (
SELECT c.*, sum(octet_length(entries)) OVER (ORDER BY generation, first_sequence) - octet_length(entries) AS preceding
FROM (SELECT generation, first_sequence, last_sequence, dropped_count, entries
FROM logs
WHERE tenant_id = %(tenant)s AND task_id = %(task)s
    AND (generation, first_sequence) >= (%(generation)s, coalesce((
        SELECT max(first_sequence) FROM logs
        WHERE tenant_id = %(tenant)s AND task_id = %(task)s AND generation = %(generation)s
            AND first_sequence <= %(sequence)s), 0))
    AND (generation > %(generation)s OR last_sequence > %(sequence)s)
    AND (%(only)s::bigint = 0 OR generation = %(only)s)
    AND max_level >= %(level)s
ORDER BY generation, first_sequence LIMIT %(limit)s) c) d
WHERE preceding < %(max_bytes)s ORDER BY generation, first_sequence;

-- name: read_logs_backwards
-- No lock. logs_by_task, backwards; chunks up to a number of bytes, or one.
SELECT generation, first_sequence, last_sequence, dropped_count, entries FROM (
SELECT c.*,
    sum(octet_length(entries)) OVER (ORDER BY generation DESC, first_sequence DESC) - octet_length(entries) AS preceding
FROM (SELECT generation, first_sequence, last_sequence, dropped_count, entries
FROM logs
WHERE tenant_id = %(tenant)s AND task_id = %(task)s
    AND (generation, first_sequence) < (%(generation)s, %(sequence)s)
    AND (%(only)s::bigint = 0 OR generation = %(only)s)
    AND max_level >= %(level)s
ORDER BY generation DESC, first_sequence DESC LIMIT %(limit)s) c) d
WHERE preceding < %(max_bytes)s ORDER BY generation DESC, first_sequence DESC;

-- name: log_ends
-- No lock. How far the logs of followed tasks are stored; logs_by_task, one entry each.
SELECT i.tenant_id, i.task_id, g.generation, g.last_sequence
FROM unnest(%(tenants)s::text[], %(tasks)s::text[]) AS i (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT generation, last_sequence FROM logs
    WHERE tenant_id = i.tenant_id AND task_id = i.task_id
    ORDER BY generation DESC, first_sequence DESC LIMIT 1) g;

-- name: log_state
-- No lock. Phase of a task, since when it is over, the last entry that its newest run reported, how far that run is
-- stored and since when; primary keys and logs_by_task.
SELECT coalesce(l.phase, t.phase), extract(epoch FROM now() - t.end_time)::float8, r.log_sequence, r.generation IS NOT NULL,
    coalesce(g.last_sequence, 0), extract(epoch FROM now() - g.time)::float8
FROM tasks t
LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id
LEFT JOIN LATERAL (
    SELECT generation, log_sequence FROM ended_runs
    WHERE tenant_id = t.tenant_id AND task_id = t.task_id ORDER BY generation DESC LIMIT 1) r ON true
LEFT JOIN LATERAL (
    SELECT last_sequence, time FROM logs
    WHERE tenant_id = t.tenant_id AND task_id = t.task_id AND generation = r.generation
    ORDER BY first_sequence DESC LIMIT 1) g ON true
WHERE t.tenant_id = %(tenant)s AND t.task_id = %(task)s;

-- name: archived_log_state
-- Locks nothing: as log_state, of an archived task; primary keys of the archive's partitions, logs_by_task.
SELECT t.phase, extract(epoch FROM now() - t.end_time)::float8, r.log_sequence, r.generation IS NOT NULL,
    coalesce(g.last_sequence, 0), extract(epoch FROM now() - g.time)::float8
FROM tasks_archive t
LEFT JOIN LATERAL (
    SELECT generation, log_sequence FROM runs_archive
    WHERE tenant_id = t.tenant_id AND task_id = t.task_id ORDER BY generation DESC LIMIT 1) r ON true
LEFT JOIN LATERAL (
    SELECT last_sequence, time FROM logs
    WHERE tenant_id = t.tenant_id AND task_id = t.task_id AND generation = r.generation
    ORDER BY first_sequence DESC LIMIT 1) g ON true
WHERE t.tenant_id = %(tenant)s AND t.task_id = %(task)s
ORDER BY t.end_time DESC LIMIT 1
