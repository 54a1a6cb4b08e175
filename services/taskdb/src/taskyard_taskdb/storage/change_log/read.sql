-- name: read_changes
-- No lock. Range scan of changes_by_id; `since` lets it skip the partitions of past months.
SELECT id, time, tenant_id, resource_kind, resource_id, version, event, phase, previous_phase, pending_reason,
    generation, attempt, retry_count, runner_loss_count, next_attempt_time, exit_code, runner_id, error_code,
    actor_type, actor_id, request_id, details
FROM change_log WHERE id > %(after)s AND time > %(since)s
ORDER BY id LIMIT %(limit)s;

-- name: read_changes_of_all
-- No lock. Range scan of changes_by_id.
SELECT id, time, tenant_id, resource_kind, resource_id, version, event, phase, previous_phase, pending_reason,
    generation, attempt, retry_count, runner_loss_count, next_attempt_time, exit_code, runner_id, error_code,
    actor_type, actor_id, request_id, details
FROM change_log WHERE id > %(after)s AND id <= %(until)s AND time > %(since)s
ORDER BY id LIMIT %(limit)s;

-- name: read_changes_of_tenant
-- No lock. Range scan of changes_by_id, filtered by tenant.
SELECT id, time, tenant_id, resource_kind, resource_id, version, event, phase, previous_phase, pending_reason,
    generation, attempt, retry_count, runner_loss_count, next_attempt_time, exit_code, runner_id, error_code,
    actor_type, actor_id, request_id, details
FROM change_log WHERE id > %(after)s AND id <= %(until)s AND time > %(since)s AND tenant_id = %(tenant)s
ORDER BY id LIMIT %(limit)s;

-- name: last_change_id
-- No lock. Reads the sequence itself: ids of open and failed transactions count.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM changes_id;

-- name: log_writers
-- No lock. Holders of the log's advisory lock: transactions that may still commit an id already drawn.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 1 AND classid = %(high)s::oid AND objid = %(low)s::oid
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- name: newest_change
-- No lock. One entry of changes_by_id, backwards.
SELECT id, time FROM changes WHERE id <= %(until)s ORDER BY id DESC LIMIT 1;

-- name: oldest_change
-- No lock. First entry of changes_by_id.
SELECT id, time FROM changes ORDER BY id LIMIT 1;
