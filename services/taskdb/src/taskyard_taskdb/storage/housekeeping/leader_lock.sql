-- name: acquire_leadership
-- Acquires or renews the leader row in one conditional update; waits for a running transaction of the leader. The epoch
-- grows if the leadership had expired or had another holder. Returns no row while another replica leads. Primary key.
UPDATE coordinator_state
SET value = %(holder)s, updated_at = clock_timestamp(), expires_at = clock_timestamp() + %(ttl)s,
    epoch = CASE WHEN value = %(holder)s AND expires_at > clock_timestamp() THEN epoch ELSE epoch + 1 END
WHERE key = 'leader_lock' AND (expires_at <= clock_timestamp() OR value = %(holder)s)
RETURNING epoch, pg_postmaster_start_time()

-- name: check_leadership
-- Share-locks the leader row, so that no other replica acquires it before this transaction ends. Primary key.
SELECT FROM coordinator_state
WHERE key = 'leader_lock' AND value = %(holder)s AND epoch = %(epoch)s AND expires_at > clock_timestamp()
FOR SHARE

-- name: store_grace
-- Stores from when on the leader may expire leases; check_leadership has locked its row. Primary key of facts.
INSERT INTO facts (key, value)
SELECT 'leader_grace', jsonb_build_object('epoch', %(epoch)s::bigint, 'database_start', %(database_start)s::timestamptz,
    'reap_time', clock_timestamp() + %(grace)s::interval)::text
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: read_grace
-- Locks nothing: in how many seconds the leader may expire leases. A value of another term, or from before a restart of
-- the database, is ignored: until a new leader has stored its grace, a minute is assumed. Returns no row without a
-- leader. Primary keys.
SELECT CASE WHEN (f.value ->> 'epoch')::bigint = c.epoch
        AND (f.value ->> 'database_start')::timestamptz = pg_postmaster_start_time()
    THEN greatest(0, extract(epoch FROM (f.value ->> 'reap_time')::timestamptz - clock_timestamp())) ELSE 60 END::float8
FROM coordinator_state c
LEFT JOIN (SELECT value::jsonb AS value FROM facts WHERE key = 'leader_grace') f ON true
WHERE c.key = 'leader_lock' AND c.expires_at > clock_timestamp()

-- name: release_leadership
-- Ends the term of this replica at once; primary key.
UPDATE coordinator_state SET expires_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE key = 'leader_lock' AND value = %(holder)s AND epoch = %(epoch)s
