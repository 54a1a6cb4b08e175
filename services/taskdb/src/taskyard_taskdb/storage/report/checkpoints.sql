-- name: insert_checkpoint
-- Inserts a checkpoint above all others of its task, which the caller has locked, and deletes those beyond the newest
-- 10. Primary key.
WITH gone AS (
    DELETE FROM checkpoints WHERE tenant_id = %(tenant)s AND task_id = %(task)s AND sequence < (
        SELECT sequence FROM checkpoints WHERE tenant_id = %(tenant)s AND task_id = %(task)s
        ORDER BY sequence DESC OFFSET 8 LIMIT 1)
)
INSERT INTO checkpoints (create_time, sequence, generation, size_bytes, progress_percent, tenant_id, task_id,
    content_type, sha256, data)
VALUES (%(create_time)s, %(sequence)s, %(generation)s, %(size)s, %(percent)s, %(tenant)s, %(task)s,
    %(content_type)s, %(sha256)s, %(data)s);

-- name: list_checkpoints
-- No lock. Primary key, backwards.
SELECT sequence, generation, size_bytes, sha256, content_type, progress_percent, create_time
FROM checkpoints WHERE tenant_id = %(tenant)s AND task_id = %(task)s AND sequence < %(before)s
ORDER BY sequence DESC LIMIT %(limit)s;

-- name: find_checkpoint
-- No lock. Primary key; sequence 0 asks for the newest.
SELECT sequence, generation, size_bytes, sha256, content_type, progress_percent, create_time
FROM checkpoints WHERE tenant_id = %(tenant)s AND task_id = %(task)s
    AND (%(sequence)s = 0 OR sequence = %(sequence)s)
ORDER BY sequence DESC LIMIT 1;

-- name: read_checkpoint_piece
-- No lock. Primary key; the content is stored uncompressed, so a piece is read without the rest.
SELECT substring(data FROM %(start)s FOR %(length)s) FROM checkpoints
WHERE tenant_id = %(tenant)s AND task_id = %(task)s AND sequence = %(sequence)s;

-- name: find_holder
-- No lock. Primary key of leases.
SELECT generation, lease_id, runner_id FROM leases WHERE tenant_id = %(tenant)s AND task_id = %(task)s;
