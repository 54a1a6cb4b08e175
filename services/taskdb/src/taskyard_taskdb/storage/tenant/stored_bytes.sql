-- name: stored_bytes
-- Locks nothing; reads all rows of a tenant, by the primary keys and logs_by_task. No value is decompressed.
SELECT (coalesce((SELECT sum(octet_length(spec) + coalesce(octet_length(annotations), 0)
        + coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0) + coalesce(octet_length(details), 0))
        FROM tasks WHERE tenant_id = %(tenant_id)s), 0)
    + coalesce((SELECT sum(octet_length(spec) + coalesce(octet_length(annotations), 0)
        + coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0) + coalesce(octet_length(details), 0))
        FROM tasks_archive WHERE tenant_id = %(tenant_id)s), 0)
    + coalesce((SELECT sum(size_bytes) FROM checkpoints WHERE tenant_id = %(tenant_id)s), 0)
    + coalesce((SELECT sum(octet_length(entries)) FROM logs WHERE tenant_id = %(tenant_id)s), 0))::bigint
