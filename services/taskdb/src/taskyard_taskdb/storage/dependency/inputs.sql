-- name: read_inputs
-- Locks nothing: the phases and results of tasks in the order of the arrays, without results beyond a sum of bytes;
-- primary keys of tasks and of the archive's partitions.
SELECT found.tenant_id, found.task_id, found.phase,
    CASE WHEN found.total <= %(bound)s THEN found.result END, found.total > %(bound)s AND found.result IS NOT NULL
FROM (
    SELECT k.n, k.tenant_id, k.task_id, t.phase, t.result,
        sum(coalesce(octet_length(t.result), 0)) OVER (ORDER BY k.n ROWS UNBOUNDED PRECEDING) AS total
    FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) WITH ORDINALITY AS k (tenant_id, task_id, n)
    CROSS JOIN LATERAL (
        SELECT phase, result FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id
        UNION ALL
        (
            SELECT phase, result FROM tasks_archive a
            WHERE a.tenant_id = k.tenant_id AND a.task_id = k.task_id
                AND NOT EXISTS (SELECT FROM tasks x WHERE x.tenant_id = k.tenant_id AND x.task_id = k.task_id)
            ORDER BY a.end_time DESC LIMIT 1
        )
        LIMIT 1
    ) t
) found
