-- name: read_slot_occupancy
-- Locks nothing: the live tasks of slots, the head first, then the others in the order of their turn up to a limit;
-- primary keys of slots and tasks, tasks_by_slot.
SELECT k.tenant_id, k.slot,
    (
        SELECT array_agg(l.task_id ORDER BY l.position)
        FROM (
            SELECT head.task_id, 0 AS position WHERE head.task_id IS NOT NULL
            UNION ALL
            SELECT t.task_id, row_number() OVER (ORDER BY t.priority DESC, t.create_time, t.task_id)
            FROM (
                SELECT task_id, priority, create_time FROM tasks
                WHERE tenant_id = k.tenant_id AND live_slot = k.slot AND task_id IS DISTINCT FROM head.task_id
                ORDER BY priority DESC, create_time, task_id
                LIMIT %(limit)s
            ) t
        ) l
    )
FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[]) AS k (tenant_id, slot)
LEFT JOIN LATERAL (
    SELECT s.head_task_id FROM slots s WHERE s.tenant_id = k.tenant_id AND s.slot = k.slot OFFSET 0
) s ON true
LEFT JOIN LATERAL (
    SELECT h.task_id FROM tasks h
    WHERE h.tenant_id = k.tenant_id AND h.task_id = s.head_task_id AND h.end_time IS NULL
    OFFSET 0
) head ON true

-- name: take_turn
-- Waits for other replacements in the same slot, which would find each other's tasks and start over again and again;
-- no other statement takes this advisory lock, and it comes before all row locks.
SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))

-- name: read_slot_heads
-- Locks nothing: the heads of slots; primary key of slots.
SELECT k.tenant_id, k.slot, s.head_task_id
FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[]) AS k (tenant_id, slot)
JOIN slots s ON s.tenant_id = k.tenant_id AND s.slot = k.slot
WHERE s.head_task_id IS NOT NULL
