-- name: doctor_acknowledgements
-- Locks nothing: the acknowledged ranges of the log, with the fingerprints they had then; changes_audit.
SELECT resource_id, details ->> 'fingerprint' FROM changes
WHERE tenant_id = 'system' AND event = %(event)s::smallint AND resource_id = ANY (%(ranges)s::text[])

-- name: doctor_digest_seals
-- Locks nothing; range scan of the primary key of seals.
SELECT sha256(coalesce(string_agg(record_send(ROW(last_id, after_id, change_count, first_time, last_time, form,
        previous_hash, hash)), ''::bytea ORDER BY last_id), ''::bytea))
FROM seals WHERE last_id > %(after)s AND last_id <= %(until)s
