-- name: record_loop_failure
-- Inserts or replaces one row; primary key of facts.
INSERT INTO facts (key, value)
VALUES (%(key)s, jsonb_build_object('time', statement_timestamp(), 'error', %(error)s::text)::text)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
