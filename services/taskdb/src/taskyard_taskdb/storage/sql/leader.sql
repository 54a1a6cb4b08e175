-- name: hold_office
-- Takes or renews the leader row in one conditional update; waits for a sweep of the leader that is under way. The epoch
-- grows whenever the office was vacant or another's; no row comes back while another holds it. Primary key.
UPDATE coordinator_state
SET value = %(holder)s, updated_at = clock_timestamp(), expires_at = clock_timestamp() + %(ttl)s,
    epoch = CASE WHEN value = %(holder)s AND expires_at > clock_timestamp() THEN epoch ELSE epoch + 1 END
WHERE key = 'leader_lock' AND (expires_at <= clock_timestamp() OR value = %(holder)s)
RETURNING epoch, pg_postmaster_start_time()

-- name: stand_office
-- Share-locks the leader row, so that nobody else takes the office before this transaction ends. Primary key.
SELECT FROM coordinator_state
WHERE key = 'leader_lock' AND value = %(holder)s AND epoch = %(epoch)s AND expires_at > clock_timestamp()
FOR SHARE

-- name: leave_office
-- Ends the own term at once; primary key.
UPDATE coordinator_state SET expires_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE key = 'leader_lock' AND value = %(holder)s AND epoch = %(epoch)s
