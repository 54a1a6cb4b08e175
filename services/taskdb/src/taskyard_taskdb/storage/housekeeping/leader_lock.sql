-- name: acquire_leadership
-- Takes or renews the leader row in one conditional update; waits for a sweep of the leader that is under way. The epoch
-- grows whenever the office was vacant or another's; no row comes back while another holds it. Primary key.
UPDATE coordinator_state
SET value = %(holder)s, updated_at = clock_timestamp(), expires_at = clock_timestamp() + %(ttl)s,
    epoch = CASE WHEN value = %(holder)s AND expires_at > clock_timestamp() THEN epoch ELSE epoch + 1 END
WHERE key = 'leader_lock' AND (expires_at <= clock_timestamp() OR value = %(holder)s)
RETURNING epoch, pg_postmaster_start_time()

-- name: check_leadership
-- Share-locks the leader row, so that nobody else takes the office before this transaction ends. Primary key.
SELECT FROM coordinator_state
WHERE key = 'leader_lock' AND value = %(holder)s AND epoch = %(epoch)s AND expires_at > clock_timestamp()
FOR SHARE

-- name: store_grace
-- Writes from when on the leader, whose row check_leadership has locked, may end leases; primary key of facts.
INSERT INTO facts (key, value)
SELECT 'leader_grace', jsonb_build_object('epoch', %(epoch)s::bigint, 'database_start', %(database_start)s::timestamptz,
    'reap_time', clock_timestamp() + %(grace)s::interval)::text
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: read_grace
-- Locks nothing: in how many seconds the leader may end leases. What was noted by another term, or before the database
-- was started again, does not count: a new term of a leader that has not told yet has all of its grace ahead, which is
-- given as a minute. No row comes back without a leader. Primary keys.
SELECT CASE WHEN (f.value ->> 'epoch')::bigint = c.epoch
        AND (f.value ->> 'database_start')::timestamptz = pg_postmaster_start_time()
    THEN greatest(0, extract(epoch FROM (f.value ->> 'reap_time')::timestamptz - clock_timestamp())) ELSE 60 END::float8
FROM coordinator_state c
LEFT JOIN (SELECT value::jsonb AS value FROM facts WHERE key = 'leader_grace') f ON true
WHERE c.key = 'leader_lock' AND c.expires_at > clock_timestamp()

-- name: release_leadership
-- Ends the own term at once; primary key.
UPDATE coordinator_state SET expires_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE key = 'leader_lock' AND value = %(holder)s AND epoch = %(epoch)s
