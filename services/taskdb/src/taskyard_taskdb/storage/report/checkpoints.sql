-- name: lock_lease_of_holder
-- Locks the lease row by its primary key; the caller goes on to the task row (lock order).
SELECT l.generation, l.lease_id, l.runner_id, l.phase, l.version, l.attempt, l.progress
FROM leases l WHERE l.tenant_id = %(tenant)s AND l.task_id = %(task)s FOR UPDATE;

-- name: lock_task_for_checkpoint
-- Locks the task row by its primary key, behind its lease.
SELECT checkpoint_sequence, phase, retry_count, runner_loss_count, generation FROM tasks
WHERE tenant_id = %(tenant)s AND task_id = %(task)s FOR UPDATE;

-- name: insert_checkpoint
-- No lock but that of the row it makes.
INSERT INTO checkpoints (sequence, generation, size_bytes, progress_percent, tenant_id, task_id, content_type, sha256,
    data)
VALUES (%(sequence)s, %(generation)s, %(size)s, %(percent)s, %(tenant)s, %(task)s, %(content_type)s, %(sha256)s,
    %(data)s)
RETURNING create_time;

-- name: note_checkpoint
-- The caller holds the locks of lease and task.
WITH leased AS (
    UPDATE leases SET version = version + 1, sign_time = now(), progress = coalesce(%(progress)s, progress)
    WHERE tenant_id = %(tenant)s AND task_id = %(task)s AND lease_id = %(lease_id)s
    RETURNING version)
UPDATE tasks SET checkpoint_sequence = %(sequence)s
WHERE tenant_id = %(tenant)s AND task_id = %(task)s
RETURNING (SELECT version FROM leased);

-- name: delete_old_checkpoints
-- Deletes by primary key what lies beyond the newest 10 of the task.
DELETE FROM checkpoints WHERE tenant_id = %(tenant)s AND task_id = %(task)s AND sequence < (
    SELECT sequence FROM checkpoints WHERE tenant_id = %(tenant)s AND task_id = %(task)s
    ORDER BY sequence DESC OFFSET 9 LIMIT 1);

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
