-- name: insert_report
-- Appends, if the task exists; no lock.
INSERT INTO inbox (tenant_id, task_id, actor_id, report)
SELECT t.tenant_id, t.task_id, %s, %s FROM tasks t WHERE t.tenant_id = %s AND t.task_id = %s

-- name: take_reports
-- Deletes the oldest reports of a task that the transaction has locked; inbox_by_task.
DELETE FROM inbox
WHERE id IN (SELECT id FROM inbox WHERE tenant_id = %s AND task_id = %s ORDER BY id LIMIT %s)
RETURNING id, actor_id, report

-- name: forget_reports
-- Deletes the reports of a task that does not exist any more; inbox_by_task.
DELETE FROM inbox WHERE tenant_id = %s AND task_id = %s

-- name: find_reported_tasks
-- Locks nothing; the table holds only what has not been applied.
SELECT tenant_id, task_id FROM inbox GROUP BY tenant_id, task_id ORDER BY min(id) LIMIT %s
