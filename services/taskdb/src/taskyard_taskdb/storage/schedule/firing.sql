-- name: lock_schedules
-- Locks schedules in key order, before any other row; primary key.
SELECT s.tenant_id, s.schedule_id, s.uid, s.version, s.next_scheduled_time
FROM unnest(%(tenant_ids)s::text[], %(schedule_ids)s::text[]) WITH ORDINALITY AS k (tenant_id, schedule_id, position)
CROSS JOIN LATERAL (
    SELECT * FROM schedules
    WHERE schedules.tenant_id = k.tenant_id AND schedules.schedule_id = k.schedule_id
    FOR UPDATE
) s
ORDER BY k.position

-- name: advance_schedules
-- Moves the cursors of schedules that lock_schedules has locked; primary key.
UPDATE schedules s
SET next_scheduled_time = c.next_scheduled_time, next_fire_time = c.next_fire_time,
    last_scheduled_time = coalesce(c.last_scheduled_time, s.last_scheduled_time),
    last_task_id = coalesce(c.last_task_id, s.last_task_id), fired_count = s.fired_count + c.fired,
    skipped_count = s.skipped_count + c.skipped, missed_count = s.missed_count + c.missed,
    remaining_runs = s.remaining_runs - c.fired
FROM unnest(%(tenant_ids)s::text[], %(schedule_ids)s::text[], %(next_scheduled_times)s::timestamptz[],
    %(next_fire_times)s::timestamptz[], %(last_scheduled_times)s::timestamptz[], %(last_task_ids)s::text[],
    %(fired)s::bigint[], %(skipped)s::bigint[], %(missed)s::bigint[])
    AS c (tenant_id, schedule_id, next_scheduled_time, next_fire_time, last_scheduled_time, last_task_id, fired, skipped,
        missed)
WHERE s.tenant_id = c.tenant_id AND s.schedule_id = c.schedule_id

-- name: note_schedule_tasks
-- Notes new tasks of locked schedules; a new row each.
INSERT INTO schedule_tasks (tenant_id, schedule_id, task_id)
SELECT * FROM unnest(%(tenant_ids)s::text[], %(schedule_ids)s::text[], %(task_ids)s::text[])
ON CONFLICT DO NOTHING

-- name: ended_schedule_tasks
-- Locks nothing: noted tasks that have ended or are gone; scans schedule_tasks, which are few; primary key of tasks.
SELECT s.tenant_id, s.schedule_id, s.task_id, coalesce(t.phase, 0)
FROM schedule_tasks s
LEFT JOIN LATERAL (
    SELECT tasks.phase, tasks.end_time FROM tasks
    WHERE tasks.tenant_id = s.tenant_id AND tasks.task_id = s.task_id
    OFFSET 0
) t ON true
WHERE t.phase IS NULL OR t.end_time IS NOT NULL
LIMIT %s

-- name: forget_schedule_tasks
-- Deletes what was noted of tasks; primary key.
DELETE FROM schedule_tasks s
USING unnest(%(tenant_ids)s::text[], %(schedule_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, schedule_id, task_id)
WHERE s.tenant_id = k.tenant_id AND s.schedule_id = k.schedule_id AND s.task_id = k.task_id
