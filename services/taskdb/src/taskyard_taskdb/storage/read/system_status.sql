-- name: system_database
-- Locks nothing; no index. The directory of the server is shown if it runs on this machine and this role may see it.
SELECT current_setting('server_version'), pg_database_size(current_database()),
    (SELECT setting FROM pg_settings WHERE name = 'data_directory'
        AND coalesce(inet_server_addr() = inet_client_addr(), true))

-- name: system_leader
-- Locks nothing; primary key of coordinator_state. Whether a replica leads, its term, and since when none does.
SELECT value, epoch, expires_at > clock_timestamp(),
    greatest(0, extract(epoch FROM clock_timestamp() - expires_at))::float8
FROM coordinator_state WHERE key = 'leader_lock'

-- name: system_standbys
-- Locks nothing; no index. A role without pg_monitor sees that there are standbys, and no more.
SELECT coalesce(application_name, ''), coalesce(state, ''), coalesce(sync_state, '') IN ('sync', 'quorum'),
    coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_lsn() END, replay_lsn), 0)::bigint,
    coalesce(extract(epoch FROM replay_lag), 0)::float8
FROM pg_stat_replication WHERE application_name IS DISTINCT FROM 'pg_basebackup'
ORDER BY 1

-- name: system_runners
-- Locks nothing; primary keys of runners and sessions.
SELECT CASE WHEN s.epoch IS NOT NULL AND NOT s.closed AND s.expire_time > statement_timestamp()
        THEN CASE WHEN s.draining OR r.drain IS NOT NULL THEN 2 ELSE 1 END
        WHEN s.stopped THEN 4 ELSE 3 END, count(*)
FROM runners r LEFT JOIN sessions s ON s.runner_id = r.runner_id
WHERE r.delete_time IS NULL GROUP BY 1

-- name: system_leases
-- Locks nothing; reads the leases, which are few beside the tasks.
SELECT count(*) FROM leases WHERE phase IN (2, 3)
