-- name: read_changes_by_ids
-- No lock. changes_by_id, one entry each; `since` excludes the partitions of earlier months.
SELECT id, time, tenant_id, resource_kind, resource_id, version, event, phase, previous_phase, pending_reason,
    generation, attempt, retry_count, runner_loss_count, next_attempt_time, exit_code, runner_id, error_code,
    actor_type, actor_id, request_id, details
FROM change_log WHERE id = ANY(%(ids)s) AND time >= %(since)s
ORDER BY id DESC;
