-- name: log_epoch
-- No lock. Primary key of facts. Another server or database, or a restored backup, is another history.
SELECT f.value::bigint, e.history, e.timeline
FROM (
    SELECT (SELECT system_identifier FROM pg_control_system())::text || '/'
            || (SELECT oid FROM pg_database WHERE datname = current_database())::text || '/'
            || (SELECT value FROM facts WHERE key = 'restore_epoch') AS history,
        substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline
) e
LEFT JOIN facts f ON f.key = 'log_epoch/' || e.history || '/' || e.timeline;

-- name: make_log_epoch
-- Inserts one row unless it exists; primary key of facts.
INSERT INTO facts (key, value)
SELECT 'log_epoch/' || (SELECT system_identifier FROM pg_control_system())::text || '/'
    || (SELECT oid FROM pg_database WHERE datname = current_database())::text || '/'
    || (SELECT value FROM facts WHERE key = 'restore_epoch') || '/'
    || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), %(number)s
ON CONFLICT (key) DO NOTHING;

-- name: insert_log_continuation
-- Locks the rows of the epoch; facts has few. What the former epoch continues is continued as far as both allow.
INSERT INTO facts (key, value)
SELECT 'log_continues/' || %(epoch)s || '/' || c.former, least(c.last_id, %(last_id)s::bigint)::text
FROM (
    SELECT %(former)s::text AS former, %(last_id)s::bigint AS last_id
    UNION ALL
    SELECT split_part(f.key, '/', 3), f.value::bigint FROM facts f
    WHERE starts_with(f.key, 'log_continues/' || %(former)s || '/')
    ORDER BY 1
) c
ON CONFLICT (key) DO UPDATE SET value = greatest(facts.value::bigint, excluded.value::bigint)::text;

-- name: log_continuation
-- No lock. Primary key of facts.
SELECT value::bigint FROM facts WHERE key = 'log_continues/' || %(epoch)s || '/' || %(former)s;

-- name: read_identities
-- No lock. Range scan of changes_by_id.
SELECT id, time, tenant_id, resource_id, version, event FROM change_log
WHERE id > %(after)s AND id <= %(until)s ORDER BY id LIMIT %(limit)s;
