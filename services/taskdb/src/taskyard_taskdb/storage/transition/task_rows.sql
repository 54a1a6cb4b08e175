-- name: lock_leases
-- Locks the leases of tasks in key order; primary key of leases. The session is read, not locked.
SELECT l.tenant_id, l.task_id, l.generation, l.version, l.phase, l.attempt, l.progress, l.details,
    l.lease_id, l.runner_id, l.session_epoch, l.claim_request_id, l.schedule_time,
    coalesce(l.expire_time, s.expire_time, 'epoch') AS expire_time, l.expire_time IS NULL AS follows_session,
    l.start_time, l.sign_time, l.progress_time, l.deadline_time, l.deadline_code, l.requested_action,
    l.action_deadline, l.action, coalesce(l.start_checkpoint, 0), l.task_type_revision
FROM (
    SELECT * FROM unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)
    ORDER BY k.tenant_id COLLATE "C", k.task_id COLLATE "C"
) k
CROSS JOIN LATERAL (
    SELECT * FROM leases WHERE leases.tenant_id = k.tenant_id AND leases.task_id = k.task_id FOR UPDATE
) l
LEFT JOIN LATERAL (
    SELECT sessions.expire_time FROM sessions
    WHERE sessions.runner_id = l.runner_id AND sessions.epoch = l.session_epoch
    OFFSET 0
) s ON true
