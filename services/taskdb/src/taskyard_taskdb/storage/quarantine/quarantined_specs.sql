-- name: add_quarantine
-- Locks or inserts the row of a spec; primary key of quarantines. Returns true if the spec was not quarantined before.
INSERT INTO quarantines AS q (tenant_id, digest, task_type, runner_loss_count, example_task_id, create_time)
VALUES (%(tenant_id)s, %(digest)s, %(task_type)s, %(losses)s, %(task_id)s, statement_timestamp())
ON CONFLICT (tenant_id, digest) DO UPDATE SET
    runner_loss_count = CASE WHEN q.release_time IS NULL THEN q.runner_loss_count ELSE 0 END
        + excluded.runner_loss_count,
    create_time = CASE WHEN q.release_time IS NULL THEN q.create_time ELSE statement_timestamp() END,
    example_task_id = excluded.example_task_id, release_time = NULL
RETURNING create_time = statement_timestamp()

-- name: read_specs
-- Locks nothing: the specs of tasks, from which digests are computed; primary key of tasks.
SELECT t.tenant_id, t.task_id, t.task_type, t.spec
FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.task_id

-- name: list_quarantines
-- Locks nothing: quarantined specs; primary key of quarantines.
SELECT tenant_id, digest, task_type, runner_loss_count, create_time, example_task_id FROM quarantines
WHERE release_time IS NULL AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
    AND (tenant_id, digest) > (%(after_tenant)s, %(after_digest)s)
ORDER BY tenant_id, digest LIMIT %(page)s
