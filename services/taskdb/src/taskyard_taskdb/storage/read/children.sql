-- name: find_children
-- Locks nothing: the parents and specs of tasks, archived ones included; primary keys of tasks and of the archive's
-- partitions.
SELECT k.task_id, t.parent_task_id, t.spec
FROM unnest(%(task_ids)s::text[]) AS k (task_id)
CROSS JOIN LATERAL (
    SELECT parent_task_id, spec FROM tasks WHERE tenant_id = %(tenant_id)s AND tasks.task_id = k.task_id
    UNION ALL
    (
        SELECT parent_task_id, spec FROM tasks_archive a
        WHERE a.tenant_id = %(tenant_id)s AND a.task_id = k.task_id
        ORDER BY a.end_time DESC LIMIT 1
    )
    LIMIT 1
) t

-- name: child_outcomes
-- Locks nothing: how children of a task have ended, archived ones included, in the order of the array. Results and errors
-- only if all have ended, and up to a sum of bytes. Primary keys of tasks and of the archive's partitions.
SELECT f.task_id, CASE WHEN f.phase >= 10 THEN f.phase END, CASE WHEN f.all_ended THEN f.result END,
    CASE WHEN f.all_ended THEN f.error END
FROM (
    SELECT k.n, k.task_id, t.phase, t.result, t.error, bool_and(t.phase >= 10) OVER () AS all_ended,
        sum(coalesce(octet_length(t.result), 0) + coalesce(octet_length(t.error), 0))
            OVER (ORDER BY k.n ROWS UNBOUNDED PRECEDING) AS total
    FROM unnest(%(task_ids)s::text[]) WITH ORDINALITY AS k (task_id, n)
    CROSS JOIN LATERAL (
        SELECT phase, result, error FROM tasks
        WHERE tenant_id = %(tenant_id)s AND tasks.task_id = k.task_id AND parent_task_id = %(parent_id)s
        UNION ALL
        (
            SELECT phase, result, error FROM tasks_archive a
            WHERE a.tenant_id = %(tenant_id)s AND a.task_id = k.task_id AND a.parent_task_id = %(parent_id)s
            ORDER BY a.end_time DESC LIMIT 1
        )
        LIMIT 1
    ) t
) f
WHERE NOT f.all_ended OR f.total <= %(bound)s OR f.n = 1
ORDER BY f.n
