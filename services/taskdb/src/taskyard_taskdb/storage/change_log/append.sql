-- name: insert_changes
-- Takes the log's shared advisory lock, then draws ids and appends, in the order of the arrays. No row lock.
INSERT INTO changes (id, time, version, generation, next_attempt_time, attempt, retry_count, runner_loss_count,
    exit_code, resource_kind, event, actor_type, phase, previous_phase, pending_reason, tenant_id, resource_id,
    actor_id, runner_id, error_code, request_id, details)
SELECT nextval('changes_id'), c.time, c.version, nullif(c.generation, 0), c.next_attempt_time, nullif(c.attempt, 0),
    nullif(c.retry_count, 0), nullif(c.runner_loss_count, 0), c.exit_code, c.resource_kind, c.event, c.actor_type,
    c.phase, nullif(c.previous_phase, 0::smallint), nullif(c.pending_reason, 0::smallint), c.tenant_id, c.resource_id,
    c.actor_id, c.runner_id, c.error_code, c.request_id,
    c.details::jsonb
FROM (SELECT pg_advisory_xact_lock_shared(%s) OFFSET 0) log,
    unnest(%s::timestamptz[], %s::integer[], %s::integer[], %s::timestamptz[], %s::integer[], %s::integer[],
        %s::integer[], %s::integer[], %s::smallint[], %s::smallint[], %s::smallint[], %s::smallint[],
        %s::smallint[], %s::smallint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
        %s::text[])
    AS c (time, version, generation, next_attempt_time, attempt, retry_count, runner_loss_count, exit_code,
        resource_kind, event, actor_type, phase, previous_phase, pending_reason, tenant_id, resource_id, actor_id,
        runner_id, error_code, request_id, details)

-- name: lock_log
-- Takes the log's shared advisory lock, after the row locks of its transaction.
SELECT pg_advisory_xact_lock_shared(%s)

-- name: copy_changes
-- Appends in the order of the rows, each drawing its id, under the lock of lock_log. No row lock.
COPY changes (time, version, generation, next_attempt_time, attempt, retry_count, runner_loss_count, exit_code,
    resource_kind, event, actor_type, phase, previous_phase, pending_reason, tenant_id, resource_id, actor_id, runner_id,
    error_code, request_id, details)
FROM STDIN (FORMAT binary)
