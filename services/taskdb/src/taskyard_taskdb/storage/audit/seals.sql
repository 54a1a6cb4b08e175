-- name: last_seal
-- No lock. Last entry of the primary key.
SELECT last_id, after_id, change_count, first_time, last_time, form, previous_hash, hash
FROM seals ORDER BY last_id DESC LIMIT 1;

-- name: read_seals
-- No lock. Range scan of the primary key.
SELECT last_id, after_id, change_count, first_time, last_time, form, previous_hash, hash
FROM seals WHERE last_id > %(after)s AND last_id <= %(until)s ORDER BY last_id LIMIT %(limit)s;

-- name: seal_before
-- No lock. One entry of the primary key, backwards.
SELECT last_id, after_id, change_count, first_time, last_time, form, previous_hash, hash
FROM seals WHERE last_id <= %(until)s ORDER BY last_id DESC LIMIT 1;

-- name: insert_seal
-- Locks only the row that it inserts; a second seal after the same predecessor is not stored.
INSERT INTO seals (last_id, after_id, change_count, first_time, last_time, form, previous_hash, hash)
VALUES (%(last_id)s, %(after_id)s, %(change_count)s, %(first_time)s, %(last_time)s, %(form)s, %(previous_hash)s,
    %(hash)s)
ON CONFLICT DO NOTHING;

-- name: end_of_range
-- No lock. Range scan of changes_by_id: the last of the next decided changes.
SELECT max(id) FROM (
    SELECT id FROM changes WHERE id > %(after)s AND id <= %(until)s ORDER BY id LIMIT %(limit)s) c;

-- name: digest_changes_1
-- No lock. Range scan of changes_by_id. Form 1: each row in PostgreSQL's binary format of these columns.
SELECT count(*), min(time), max(time), sha256(coalesce(string_agg(record_send(ROW(id, time, version, generation,
        next_attempt_time, attempt, retry_count, runner_loss_count, exit_code, resource_kind, event, actor_type, phase,
        previous_phase, pending_reason, tenant_id, resource_id, actor_id, runner_id, error_code, request_id,
        details)), ''::bytea ORDER BY id), ''::bytea))
FROM changes WHERE id > %(after)s AND id <= %(until)s;

-- name: read_fact
-- No lock. Primary key.
SELECT value FROM facts WHERE key = %(key)s;

-- name: write_fact
-- Locks the fact's row. Primary key.
INSERT INTO facts (key, value) VALUES (%(key)s, %(value)s)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
