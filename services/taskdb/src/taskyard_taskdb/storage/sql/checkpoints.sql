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

-- name: crowded_checkpoints
-- Locks nothing: the next tasks that have checkpoints, and whether these are too many; primary keys.
SELECT c.tenant_id, c.task_id,
    count(*) > 10 OR NOT EXISTS (
        SELECT FROM tasks t WHERE t.tenant_id = c.tenant_id AND t.task_id = c.task_id)
FROM checkpoints c
WHERE (c.tenant_id, c.task_id) > (%(after_tenant)s, %(after_task)s)
GROUP BY c.tenant_id, c.task_id
ORDER BY c.tenant_id, c.task_id LIMIT %(page)s

-- name: trim_checkpoints
-- Deletes what lies beyond the newest 10 of each task, or all if it is gone; the task is not locked, since nothing older
-- than its newest checkpoints is ever written. Primary keys.
DELETE FROM checkpoints c
USING unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
CROSS JOIN LATERAL (
    SELECT min(newest.sequence) AS sequence FROM (
        SELECT x.sequence FROM checkpoints x WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id
            AND EXISTS (SELECT FROM tasks t WHERE t.tenant_id = k.tenant_id AND t.task_id = k.task_id)
        ORDER BY x.sequence DESC LIMIT 10
    ) newest
) kept
WHERE c.tenant_id = k.tenant_id AND c.task_id = k.task_id AND c.sequence < coalesce(kept.sequence, 9223372036854775807)
