-- name: make_token_key
-- Inserts one row unless it exists; primary key of facts.
INSERT INTO facts (key, value) VALUES ('token_key', %(value)s) ON CONFLICT (key) DO NOTHING

-- name: read_token_key
-- No lock; primary key of facts.
SELECT value FROM facts WHERE key = 'token_key'
