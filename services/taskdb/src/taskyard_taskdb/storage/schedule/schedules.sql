-- name: insert_schedule
-- Waits for a concurrent insert of the same id; no row comes back if the id is taken.
INSERT INTO schedules (tenant_id, schedule_id, uid, definition, paused, pause_note, pause_on_failure, remaining_runs,
    next_scheduled_time, next_fire_time, create_time, update_time)
VALUES (%(tenant_id)s, %(schedule_id)s, %(uid)s, %(definition)s, %(paused)s, %(pause_note)s, %(pause_on_failure)s,
    %(remaining_runs)s, %(next_scheduled_time)s, %(next_fire_time)s, %(create_time)s, %(update_time)s)
ON CONFLICT (tenant_id, schedule_id) DO NOTHING
RETURNING tenant_id, schedule_id, uid, version, create_time, update_time, definition, paused, pause_note, pause_on_failure,
    remaining_runs, next_scheduled_time, next_fire_time, skip_until, last_scheduled_time, last_task_id, fired_count,
    skipped_count, missed_count

-- name: update_schedule
-- Writes a schedule that lock_schedule has locked; primary key.
UPDATE schedules
SET definition = %(definition)s, paused = %(paused)s, pause_note = %(pause_note)s,
    pause_on_failure = %(pause_on_failure)s, remaining_runs = %(remaining_runs)s,
    next_scheduled_time = %(next_scheduled_time)s, next_fire_time = %(next_fire_time)s, skip_until = %(skip_until)s,
    missed_count = %(missed_count)s, version = version + 1, update_time = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND schedule_id = %(schedule_id)s
RETURNING tenant_id, schedule_id, uid, version, create_time, update_time, definition, paused, pause_note, pause_on_failure,
    remaining_runs, next_scheduled_time, next_fire_time, skip_until, last_scheduled_time, last_task_id, fired_count,
    skipped_count, missed_count

-- name: read_schedule
-- Reads by primary key, no lock.
SELECT tenant_id, schedule_id, uid, version, create_time, update_time, definition, paused, pause_note, pause_on_failure,
    remaining_runs, next_scheduled_time, next_fire_time, skip_until, last_scheduled_time, last_task_id, fired_count,
    skipped_count, missed_count
FROM schedules WHERE tenant_id = %s AND schedule_id = %s

-- name: lock_schedule
-- Locks one schedule by its primary key, and waits; before any other row.
SELECT tenant_id, schedule_id, uid, version, create_time, update_time, definition, paused, pause_note, pause_on_failure,
    remaining_runs, next_scheduled_time, next_fire_time, skip_until, last_scheduled_time, last_task_id, fired_count,
    skipped_count, missed_count
FROM schedules WHERE tenant_id = %s AND schedule_id = %s FOR UPDATE

-- name: list_schedules
-- Locks nothing; a page along the primary key, of one tenant or, for null, of all.
SELECT tenant_id, schedule_id, uid, version, create_time, update_time, definition, paused, pause_note, pause_on_failure,
    remaining_runs, next_scheduled_time, next_fire_time, skip_until, last_scheduled_time, last_task_id, fired_count,
    skipped_count, missed_count
FROM schedules
WHERE (tenant_id, schedule_id) > (%(after_tenant)s, %(after_schedule)s)
    AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
ORDER BY tenant_id, schedule_id LIMIT %(size)s

-- name: delete_schedule
-- Deletes a schedule that lock_schedule has locked, with its rows of schedule_tasks; primary keys.
DELETE FROM schedules WHERE tenant_id = %s AND schedule_id = %s

-- name: count_schedules
-- Locks nothing; primary key, up to a limit.
SELECT count(*) FROM (SELECT FROM schedules WHERE tenant_id = %s LIMIT %s) counted

-- name: next_schedule
-- Locks nothing: the time, and when the next schedule is due; schedules_due.
SELECT clock_timestamp(), (SELECT min(next_fire_time) FROM schedules WHERE next_fire_time IS NOT NULL)

-- name: due_schedules
-- Locks nothing: schedules with a due instant, oldest first; schedules_due. Whoever acts on one locks it and compares.
SELECT tenant_id, schedule_id, uid, version, create_time, update_time, definition, paused, pause_note, pause_on_failure,
    remaining_runs, next_scheduled_time, next_fire_time, skip_until, last_scheduled_time, last_task_id, fired_count,
    skipped_count, missed_count
FROM schedules WHERE next_fire_time <= %(now)s ORDER BY next_fire_time LIMIT %(size)s
