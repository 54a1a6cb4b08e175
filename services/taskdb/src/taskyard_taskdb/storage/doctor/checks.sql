-- name: doctor_leases_without_task
-- Locks nothing: leases of tasks that have ended or do not exist; scans leases, which are few.
SELECT l.tenant_id, l.task_id FROM leases l
LEFT JOIN tasks t ON t.tenant_id = l.tenant_id AND t.task_id = l.task_id
WHERE t.task_id IS NULL OR t.end_time IS NOT NULL

-- name: doctor_lock_leases
-- Locks leases in key order; primary key.
SELECT l.tenant_id, l.task_id
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
    ORDER BY k.tenant_id COLLATE "C", k.id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM leases WHERE leases.tenant_id = k.tenant_id AND leases.task_id = k.id FOR UPDATE
) l

-- name: doctor_delete_leases
-- Deletes locked leases that still belong to no live task; primary keys.
DELETE FROM leases l
USING unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
WHERE l.tenant_id = k.tenant_id AND l.task_id = k.id AND NOT EXISTS (
    SELECT FROM tasks t WHERE t.tenant_id = l.tenant_id AND t.task_id = l.task_id AND t.end_time IS NULL)

-- name: doctor_running_without_lease
-- Locks nothing: running tasks without a lease; tasks_held.
SELECT t.tenant_id, t.task_id FROM tasks t
WHERE t.held_time IS NOT NULL AND t.phase IN (2, 3) AND t.kind <> 6
    AND NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = t.tenant_id AND l.task_id = t.task_id)

-- name: doctor_leases_without_session
-- Locks nothing: leases whose session does not exist; scans leases, which are few.
SELECT l.tenant_id, l.task_id FROM leases l
WHERE l.phase IN (2, 3) AND l.expire_time IS NULL
    AND NOT EXISTS (SELECT FROM sessions s WHERE s.runner_id = l.runner_id AND s.epoch = l.session_epoch)

-- name: doctor_leases_overdue
-- Locks nothing: leases that expired minutes ago and still exist; scans leases, which are few.
SELECT l.tenant_id, l.task_id
FROM leases l LEFT JOIN sessions s ON s.runner_id = l.runner_id AND s.epoch = l.session_epoch
WHERE l.phase IN (2, 3) AND coalesce(l.expire_time, s.expire_time) < statement_timestamp() - interval '5 minutes'

-- name: doctor_claimable_without_queue
-- Locks nothing: claimable tasks without a queue row; scans tasks, primary keys.
SELECT t.tenant_id, t.task_id
FROM tasks t LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id
WHERE t.end_time IS NULL AND t.kind <> 6 AND CASE WHEN l.task_id IS NULL
        THEN t.phase = 5 OR (t.phase = 1 AND t.pending_reason = 1)
        ELSE l.phase = 5 AND l.requested_action = 0 END
    AND NOT EXISTS (SELECT FROM queue q
        WHERE q.tenant_id = t.tenant_id AND q.class_id = t.class_id AND q.priority = t.priority
            AND q.pinned_runner = t.pinned_runner AND q.ready_time = t.ready_time AND q.task_id = t.task_id)

-- name: doctor_lock_tasks
-- Locks tasks in key order; primary key of tasks.
SELECT t.tenant_id, t.task_id, t.phase
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
    ORDER BY k.tenant_id COLLATE "C", k.id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM tasks WHERE tasks.tenant_id = k.tenant_id AND tasks.task_id = k.id FOR UPDATE
) t

-- name: doctor_queue_without_task
-- Locks nothing: queue rows that do not match a claimable task; primary keys.
SELECT q.tenant_id, q.task_id
FROM queue q
LEFT JOIN tasks t ON t.tenant_id = q.tenant_id AND t.task_id = q.task_id
LEFT JOIN leases l ON l.tenant_id = q.tenant_id AND l.task_id = q.task_id
WHERE NOT coalesce(t.end_time IS NULL AND t.class_id = q.class_id AND t.priority = q.priority
    AND t.pinned_runner = q.pinned_runner AND t.ready_time = q.ready_time
    AND CASE WHEN l.task_id IS NULL THEN t.phase = 5 OR (t.phase = 1 AND t.pending_reason = 1)
        ELSE l.phase = 5 AND l.requested_action = 0 END, false)

-- name: doctor_lock_queue
-- Locks the queue rows of tasks; scans the primary key of queue by tenant.
SELECT q.tenant_id, q.task_id
FROM (SELECT DISTINCT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)) k
JOIN queue q ON q.tenant_id = k.tenant_id AND q.task_id = k.id
ORDER BY q.tenant_id, q.class_id, q.priority, q.pinned_runner, q.ready_time, q.task_id
FOR UPDATE OF q

-- name: doctor_dequeue
-- Deletes locked queue rows that still do not match a claimable task; primary keys.
DELETE FROM queue q
USING unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
WHERE q.tenant_id = k.tenant_id AND q.task_id = k.id AND NOT EXISTS (
    SELECT FROM tasks t LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id
    WHERE t.tenant_id = q.tenant_id AND t.task_id = q.task_id AND t.end_time IS NULL AND t.class_id = q.class_id
        AND t.priority = q.priority AND t.pinned_runner = q.pinned_runner AND t.ready_time = q.ready_time
        AND CASE WHEN l.task_id IS NULL THEN t.phase = 5 OR (t.phase = 1 AND t.pending_reason = 1)
            ELSE l.phase = 5 AND l.requested_action = 0 END)

-- name: doctor_waiting_without_timer
-- Locks nothing: delayed and retried tasks without a timer; tasks_held, primary key of timers.
SELECT t.tenant_id, t.task_id FROM tasks t
WHERE t.held_time IS NOT NULL AND t.phase = 1 AND t.pending_reason IN (2, 3)
    AND NOT EXISTS (SELECT FROM leases l WHERE l.tenant_id = t.tenant_id AND l.task_id = t.task_id)
    AND NOT EXISTS (
        SELECT FROM timers d WHERE d.tenant_id = t.tenant_id AND d.task_id = t.task_id AND d.kind = 1)

-- name: doctor_set_timers
-- Inserts the timers of locked tasks that are delayed or wait for a retry; primary keys.
INSERT INTO timers (tenant_id, task_id, kind, due_time)
SELECT t.tenant_id, t.task_id, 1, coalesce(t.next_attempt_time, statement_timestamp())
FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.id
WHERE t.end_time IS NULL AND t.phase = 1 AND t.pending_reason IN (2, 3)
ON CONFLICT DO NOTHING

-- name: doctor_timers_without_task
-- Locks nothing: timers of tasks that have ended or do not exist; scans timers.
SELECT d.tenant_id, d.task_id FROM timers d
LEFT JOIN tasks t ON t.tenant_id = d.tenant_id AND t.task_id = d.task_id
WHERE t.task_id IS NULL OR t.end_time IS NOT NULL

-- name: doctor_lock_timers
-- Locks the timers of tasks in key order, after the tasks; primary key of timers.
SELECT d.tenant_id, d.task_id, d.kind
FROM (
    SELECT DISTINCT * FROM unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
    ORDER BY k.tenant_id, k.id
) k
CROSS JOIN LATERAL (
    SELECT * FROM timers WHERE timers.tenant_id = k.tenant_id AND timers.task_id = k.id ORDER BY timers.kind FOR UPDATE
) d

-- name: doctor_delete_timers
-- Deletes locked timers whose task is still not live; primary keys.
DELETE FROM timers d
USING unnest(%(tenant_ids)s::text[], %(ids)s::text[]) AS k (tenant_id, id)
WHERE d.tenant_id = k.tenant_id AND d.task_id = k.id AND NOT EXISTS (
    SELECT FROM tasks t WHERE t.tenant_id = d.tenant_id AND t.task_id = d.task_id AND t.end_time IS NULL)

-- name: doctor_slots_without_head
-- Locks nothing: slots whose head does not hold them, and slots that tasks wait for and that have no row; primary keys,
-- tasks_by_slot.
SELECT s.tenant_id, s.slot
FROM slots s
LEFT JOIN tasks t ON t.tenant_id = s.tenant_id AND t.task_id = s.head_task_id
LEFT JOIN leases l ON l.tenant_id = s.tenant_id AND l.task_id = s.head_task_id
WHERE NOT coalesce(t.slot = s.slot AND t.end_time IS NULL
    AND (l.task_id IS NOT NULL OR t.phase = 5 OR (t.phase = 1 AND t.pending_reason IN (1, 7))), false)
UNION
SELECT t.tenant_id, t.slot FROM tasks t
WHERE t.slot IS NOT NULL AND t.end_time IS NULL AND t.phase = 1 AND t.pending_reason = 4
    AND NOT EXISTS (SELECT FROM slots s WHERE s.tenant_id = t.tenant_id AND s.slot = t.slot)

-- name: doctor_holders_without_slot
-- Locks nothing: claimable or leased tasks that are not the head of their slot; tasks_by_slot, primary keys.
SELECT t.tenant_id, t.task_id
FROM tasks t LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id
LEFT JOIN slots s ON s.tenant_id = t.tenant_id AND s.slot = t.slot
WHERE t.slot IS NOT NULL AND t.end_time IS NULL AND t.kind <> 6
    AND (l.task_id IS NOT NULL OR t.phase = 5 OR (t.phase = 1 AND t.pending_reason IN (1, 7)))
    AND s.head_task_id IS DISTINCT FROM t.task_id

-- name: doctor_dependencies
-- Locks nothing: tasks that wait for prerequisites while none of them is open or one of the open has ended, whose row in
-- blocked_tasks is missing or wrong, and rows of tasks that do not wait. What the sweep is about to do is left out.
-- blocked_tasks, dependencies_of_task, tasks_held, primary keys.
WITH waiting AS MATERIALIZED (
    SELECT t.tenant_id, t.task_id FROM tasks t WHERE t.held_time IS NOT NULL AND t.blocked
), counted AS MATERIALIZED (
    SELECT w.tenant_id, w.task_id, count(*) FILTER (WHERE d.open) AS open_count,
        coalesce(bool_or(d.open AND (p.end_time IS NOT NULL OR g.complete_time IS NOT NULL
            OR p.task_id IS NULL AND g.group_id IS NULL)) FILTER (WHERE b.task_id IS NULL), false) AS missed
    FROM waiting w
    JOIN dependencies d ON d.tenant_id = w.tenant_id AND d.task_id = w.task_id
    LEFT JOIN tasks p ON p.tenant_id = d.tenant_id AND p.task_id = d.prerequisite_id
    LEFT JOIN groups g ON g.tenant_id = d.tenant_id AND 'groups/' || g.group_id = d.prerequisite_id
    LEFT JOIN dependency_backlog b ON b.tenant_id = d.tenant_id AND b.task_id = d.prerequisite_id AND b.kind = 1
    GROUP BY 1, 2
)
SELECT w.tenant_id, w.task_id
FROM waiting w
LEFT JOIN counted c ON c.tenant_id = w.tenant_id AND c.task_id = w.task_id
LEFT JOIN blocked_tasks b ON b.tenant_id = w.tenant_id AND b.task_id = w.task_id
WHERE b.task_id IS NULL OR coalesce(c.missed, true) OR c.open_count <> b.open_count
UNION ALL
SELECT b.tenant_id, b.task_id FROM blocked_tasks b
WHERE NOT EXISTS (
    SELECT FROM tasks t WHERE t.tenant_id = b.tenant_id AND t.task_id = b.task_id AND t.blocked AND t.end_time IS NULL)

-- name: doctor_groups
-- Locks nothing: groups whose counts, with what is to be added to them, differ from a recount, and groups of children
-- that the end of their parent has not closed. Ended tasks that were archived or deleted stay counted. tasks_by_group.
WITH counted AS MATERIALIZED (
    SELECT tenant_id, group_id, count(*) FILTER (WHERE end_time IS NULL) AS live,
        count(*) FILTER (WHERE phase = 10) AS succeeded, count(*) FILTER (WHERE phase > 10) AS not_succeeded
    FROM tasks WHERE group_id IS NOT NULL GROUP BY 1, 2
), added AS MATERIALIZED (
    SELECT tenant_id, group_id, sum(live) AS live, sum(succeeded) AS succeeded, sum(not_succeeded) AS not_succeeded,
        count(closes) AS closes
    FROM group_deltas GROUP BY 1, 2
)
SELECT g.tenant_id, g.group_id
FROM groups g
LEFT JOIN counted c ON c.tenant_id = g.tenant_id AND c.group_id = g.group_id
LEFT JOIN added d ON d.tenant_id = g.tenant_id AND d.group_id = g.group_id
LEFT JOIN tasks p ON p.tenant_id = g.tenant_id AND p.task_id = g.parent_task_id
WHERE g.live_count + coalesce(d.live, 0) <> coalesce(c.live, 0)
    OR g.succeeded_count + coalesce(d.succeeded, 0) < coalesce(c.succeeded, 0)
    OR g.not_succeeded_count + coalesce(d.not_succeeded, 0) < coalesce(c.not_succeeded, 0)
    OR g.parent_task_id IS NOT NULL AND g.close_time IS NULL AND (p.task_id IS NULL OR p.end_time IS NOT NULL)
        AND coalesce(d.closes, 0) = 0

-- name: doctor_log_differs
-- Locks nothing: tasks that changed within a day and whose newest change has another version or is missing;
-- changes_by_time, primary keys. A task without a change in this time was checked the nights before.
WITH logged AS MATERIALIZED (
    SELECT tenant_id, resource_id, max(version) AS version FROM changes
    WHERE resource_kind = 1 AND time > statement_timestamp() - interval '1 day'
    GROUP BY tenant_id, resource_id
)
SELECT t.tenant_id, t.task_id
FROM logged g JOIN tasks t ON t.tenant_id = g.tenant_id AND t.task_id = g.resource_id
LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id
WHERE coalesce(l.version, t.version) <> g.version
UNION ALL
SELECT t.tenant_id, t.task_id FROM tasks t
WHERE t.update_time > statement_timestamp() - interval '23 hours'
    AND NOT EXISTS (SELECT FROM logged g WHERE g.tenant_id = t.tenant_id AND g.resource_id = t.task_id)

-- name: doctor_stuck_webhooks
-- Locks nothing: tasks with a webhook older than a day; the table holds only undelivered webhooks.
SELECT w.tenant_id, w.task_id FROM webhooks w WHERE w.create_time < statement_timestamp() - interval '1 day'

-- name: doctor_failing_jobs
-- Locks nothing: jobs whose last run failed, or that have not succeeded for days; a row per job.
SELECT 'system', job FROM job_runs
WHERE error IS NOT NULL OR coalesce(success_time, start_time) < statement_timestamp() - interval '3 days'

-- name: doctor_failed_loops
-- Locks nothing: loops of housekeeping that failed within an hour; facts has few rows.
SELECT 'system', substr(f.key, 6) FROM facts f
WHERE f.key LIKE 'loop:%%' AND (f.value::jsonb ->> 'time')::timestamptz > now() - interval '1 h'

-- name: doctor_weak_durability
-- Locks nothing: settings with which a crash or a failover loses acknowledged writes (G1), or that block writes; a row
-- per finding. A role without pg_monitor sees that standbys are connected, and NULL for their state.
SELECT 'system', 'synchronous_commit is off: a crash loses the last writes; set it to on'
WHERE current_setting('synchronous_commit') = 'off'
UNION ALL
SELECT 'system', 'synchronous_commit is local: a failover loses the last writes; set it to on'
WHERE current_setting('synchronous_commit') = 'local' AND current_setting('synchronous_standby_names') <> ''
UNION ALL
SELECT 'system', 'synchronous_standby_names is empty and a standby is connected: a failover to it loses the last '
    'writes; name it'
WHERE current_setting('synchronous_standby_names') = '' AND EXISTS (SELECT FROM pg_stat_replication)
UNION ALL
SELECT 'system', 'synchronous_standby_names is ' || current_setting('synchronous_standby_names')
    || ' and no such standby is connected: writes wait for one; start it, or remove it from the setting'
WHERE current_setting('synchronous_standby_names') <> ''
    AND current_setting('synchronous_commit') NOT IN ('off', 'local')
    AND NOT EXISTS (SELECT FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum'))

-- name: doctor_overdue_schedules
-- Locks nothing: schedules with an instant that was due minutes ago; schedules_due.
SELECT tenant_id, schedule_id FROM schedules
WHERE next_fire_time < statement_timestamp() - interval '5 minutes'

-- name: doctor_old_transactions
-- Locks nothing: transactions of this database that hold back vacuum; a row each. A role without pg_monitor sees its own
-- sessions.
SELECT 'system', 'a transaction of ' || a.usename || ' (pid ' || a.pid || ', '
    || coalesce(nullif(a.application_name, ''), 'unnamed') || ') is open since ' || date_trunc('second', a.xact_start)
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
    AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND a.xact_start <= clock_timestamp() - %(age)s::interval
UNION ALL
SELECT 'system', 'the transaction ' || p.gid || ' is prepared since ' || date_trunc('second', p.prepared)
FROM pg_prepared_xacts p
WHERE p.database = current_database() AND p.prepared <= clock_timestamp() - %(age)s::interval
