-- name: trim_sign_in_codes
-- Keeps the newest codes of a key that lock_api_key has locked; sign_in_codes_by_key.
DELETE FROM sign_in_codes
WHERE key_id = %(key_id)s AND code_id NOT IN (
    SELECT code_id FROM sign_in_codes
    WHERE key_id = %(key_id)s AND expire_time > statement_timestamp()
    ORDER BY expire_time DESC LIMIT %(keep)s
)

-- name: insert_sign_in_code
-- The id is random; primary key.
INSERT INTO sign_in_codes (code_id, secret_hash, key_id, expire_time)
VALUES (%(code_id)s, %(secret_hash)s, %(key_id)s, statement_timestamp() + %(valid_for)s)
RETURNING expire_time

-- name: find_sign_in_code
-- Reads by primary key, no lock.
SELECT secret_hash, key_id FROM sign_in_codes WHERE code_id = %s AND expire_time > statement_timestamp()

-- name: use_sign_in_code
-- Of two callers that exchange one code at once, the second waits and deletes nothing; primary key.
DELETE FROM sign_in_codes WHERE code_id = %s AND expire_time > statement_timestamp() RETURNING key_id

-- name: delete_ended_sign_ins
-- Deletes keys of earlier sign-ins a day after they ended; api_keys_by_parent.
DELETE FROM api_keys WHERE parent_key_id = %s AND expire_time < statement_timestamp() - interval '1 day'
