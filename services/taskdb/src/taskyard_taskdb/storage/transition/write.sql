-- name: delete_queue
-- Deletes queue rows that lock_queue has locked; primary key of queue.
DELETE FROM queue q
USING unnest(%(tenant_ids)s::text[], %(class_ids)s::bigint[], %(priorities)s::smallint[], %(pinned_runners)s::text[],
        %(ready_times)s::timestamptz[], %(task_ids)s::text[])
    AS c (tenant_id, class_id, priority, pinned_runner, ready_time, task_id)
CROSS JOIN LATERAL (
    SELECT ctid AS at FROM queue
    WHERE queue.tenant_id = c.tenant_id AND queue.class_id = c.class_id AND queue.priority = c.priority
        AND queue.pinned_runner = c.pinned_runner AND queue.ready_time = c.ready_time
        AND queue.task_id = c.task_id
    OFFSET 0
) x
WHERE q.ctid = x.at

-- name: insert_queue
-- Appends to lanes; the rows are new, nothing waits.
INSERT INTO queue (class_id, ready_time, priority, has_lease, tenant_id, pinned_runner, task_id)
SELECT * FROM unnest(%(class_ids)s::bigint[], %(ready_times)s::timestamptz[], %(priorities)s::smallint[],
    %(has_leases)s::boolean[], %(tenant_ids)s::text[], %(pinned_runners)s::text[], %(task_ids)s::text[])
