-- name: lock_slots
-- Locks the rows of slots in key order, making those that are missing; primary key of slots. The successor is chosen in
-- the next statement, whose snapshot sees every waiter that was committed under this lock.
INSERT INTO slots AS s (tenant_id, slot)
SELECT k.tenant_id, k.slot FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[]) AS k (tenant_id, slot)
ORDER BY k.tenant_id, k.slot
ON CONFLICT (tenant_id, slot) DO UPDATE SET waiting_count = s.waiting_count
RETURNING s.tenant_id, s.slot, s.head_task_id

-- name: choose_heads
-- Locks the first waiter of each slot that is not locked by another transaction; tasks_by_slot. It must not wait: here
-- the order is slot, then task.
SELECT t.tenant_id, t.task_id, t.create_time, t.kind, t.class_id, t.priority, t.pinned_runner, t.slot, t.policy,
    t.version, t.phase, t.pending_reason, t.generation, t.attempt, t.retry_count, t.runner_loss_count,
    t.retry_delay, t.checkpoint_sequence, t.update_time, t.ready_time, t.next_attempt_time, t.schedule_time,
    t.start_time, t.end_time, t.total_deadline, t.last_runner_id, t.exit_code, t.error_code, t.error, t.result,
    t.progress, t.details, t.blocked, coalesce(t.has_dependents, false), t.group_id, t.limited
FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[]) AS k (tenant_id, slot)
CROSS JOIN LATERAL (
    SELECT * FROM tasks
    WHERE tasks.tenant_id = k.tenant_id AND tasks.live_slot = k.slot
        AND tasks.phase = 1 AND tasks.pending_reason = 4
    ORDER BY tasks.priority DESC, tasks.create_time, tasks.task_id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
) t

-- name: waiting_slots
-- Locks nothing: which of these slots have waiters; tasks_by_slot.
SELECT k.tenant_id, k.slot
FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[]) AS k (tenant_id, slot)
WHERE EXISTS (
    SELECT FROM tasks
    WHERE tasks.tenant_id = k.tenant_id AND tasks.live_slot = k.slot
        AND tasks.phase = 1 AND tasks.pending_reason = 4)

-- name: set_heads
-- Writes the heads of slots that lock_slots has locked; primary key of slots.
UPDATE slots s SET head_task_id = c.head_task_id
FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[], %(head_task_ids)s::text[])
    AS c (tenant_id, slot, head_task_id)
WHERE s.tenant_id = c.tenant_id AND s.slot = c.slot

-- name: delete_slots
-- Removes slots that lock_slots has locked and without head and waiters; primary key of slots.
DELETE FROM slots s USING unnest(%(tenant_ids)s::text[], %(slots)s::text[]) AS c (tenant_id, slot)
WHERE s.tenant_id = c.tenant_id AND s.slot = c.slot

-- name: leave_slots
-- Removes the slots without waiters and returns them. An earlier statement has locked their rows, so this
-- one sees every waiter; primary key of slots, tasks_by_slot.
WITH free AS MATERIALIZED (
    SELECT s.at
    FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[]) AS k (tenant_id, slot)
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM slots WHERE slots.tenant_id = k.tenant_id AND slots.slot = k.slot OFFSET 0
    ) s
    LEFT JOIN LATERAL (
        SELECT true AS found FROM tasks
        WHERE tasks.tenant_id = k.tenant_id AND tasks.live_slot = k.slot
            AND tasks.phase = 1 AND tasks.pending_reason = 4
        LIMIT 1
    ) waiter ON true
    WHERE waiter.found IS NULL
)
DELETE FROM slots USING free WHERE slots.ctid = free.at
RETURNING slots.tenant_id, slots.slot

-- name: find_slot_holders
-- Locks nothing: tasks that can be claimed or are leased, by their slots; tasks_of_slot, and leases by tenant. Whoever
-- acts on it locks the slots and looks again.
SELECT k.tenant_id, k.slot, h.task_id
FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[]) AS k (tenant_id, slot)
CROSS JOIN LATERAL (
    SELECT tasks.task_id FROM tasks
    WHERE tasks.tenant_id = k.tenant_id AND tasks.slot = k.slot AND tasks.end_time IS NULL
        AND (tasks.phase = 5 OR (tasks.phase = 1 AND tasks.pending_reason IN (1, 7)))
    UNION
    SELECT leases.task_id FROM leases WHERE leases.tenant_id = k.tenant_id AND leases.slot = k.slot
) h

-- name: slot_holders
-- Locks nothing: which of these tasks hold their slots, read after the slots were locked: until that lock is
-- given back nobody begins to hold one, and who ceases to waits for it. First what surely runs, then what may, then what
-- is to run first; primary keys.
SELECT k.tenant_id, k.slot, t.task_id, coalesce(l.phase IN (2, 3), false) AS active,
    l.task_id IS NOT NULL AS leased, q.task_id IS NOT NULL OR t.phase = 1 AND t.pending_reason = 7
FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[], %(task_ids)s::text[]) AS k (tenant_id, slot, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM tasks
    WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.task_id AND tasks.slot = k.slot AND tasks.end_time IS NULL
    OFFSET 0
) t
LEFT JOIN LATERAL (
    SELECT leases.task_id, leases.phase FROM leases
    WHERE leases.tenant_id = t.tenant_id AND leases.task_id = t.task_id
    OFFSET 0
) l ON true
LEFT JOIN LATERAL (
    SELECT queue.task_id FROM queue
    WHERE queue.tenant_id = t.tenant_id AND queue.class_id = t.class_id AND queue.priority = t.priority
        AND queue.pinned_runner = t.pinned_runner AND queue.ready_time = t.ready_time AND queue.task_id = t.task_id
    OFFSET 0
) q ON true
WHERE l.task_id IS NOT NULL OR t.phase = 5 OR (t.phase = 1 AND t.pending_reason IN (1, 7))
ORDER BY k.tenant_id, k.slot, active DESC, leased DESC, t.priority DESC, t.create_time, t.task_id
