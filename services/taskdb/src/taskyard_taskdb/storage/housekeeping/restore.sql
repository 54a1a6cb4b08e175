-- name: bump_restore_epoch
-- Locks the fact's row. Primary key of facts.
UPDATE facts SET value = (value::bigint + 1)::text WHERE key = 'restore_epoch' RETURNING value::bigint;

-- name: close_all_sessions
-- Locks every session, in key order: no earlier session remains open.
UPDATE sessions SET closed = true, epoch = sessions.epoch + 1, expire_time = clock_timestamp()
FROM (SELECT runner_id FROM sessions ORDER BY runner_id FOR UPDATE) s
WHERE s.runner_id = sessions.runner_id;

-- name: revoke_all_leases
-- Locks every lease, in key order. A new lease id rejects reports of the former holder. The grace prevents a task that
-- must not overlap with itself from starting while that holder may still run it.
UPDATE leases SET lease_id = (random() * 9007199254740991)::bigint, session_epoch = 0,
    expire_time = clock_timestamp() + %(grace)s
FROM (SELECT tenant_id, task_id FROM leases ORDER BY tenant_id, task_id FOR UPDATE) l
WHERE l.tenant_id = leases.tenant_id AND l.task_id = leases.task_id
RETURNING leases.tenant_id, leases.task_id;
