-- name: insert_changes
-- Takes the log's shared advisory lock, then draws ids and appends, in the order of the arrays. No row lock.
INSERT INTO changes (id, time, version, generation, next_attempt_time, attempt, retry_count, runner_loss_count,
    exit_code, resource_kind, event, actor_type, phase, previous_phase, pending_reason, tenant_id, resource_id,
    actor_id, runner_id, error_code, request_id, details)
SELECT nextval('changes_id'), c.time, c.version, c.generation, c.next_attempt_time, c.attempt, c.retry_count,
    c.runner_loss_count, c.exit_code, c.resource_kind, c.event, c.actor_type, c.phase, c.previous_phase,
    c.pending_reason, c.tenant_id, c.resource_id, c.actor_id, c.runner_id, c.error_code, c.request_id,
    c.details::jsonb
FROM (SELECT pg_advisory_xact_lock_shared(%s) OFFSET 0) log,
    unnest(%s::timestamptz[], %s::bigint[], %s::bigint[], %s::timestamptz[], %s::integer[], %s::integer[],
        %s::integer[], %s::integer[], %s::smallint[], %s::smallint[], %s::smallint[], %s::smallint[],
        %s::smallint[], %s::smallint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
        %s::text[])
    AS c (time, version, generation, next_attempt_time, attempt, retry_count, runner_loss_count, exit_code,
        resource_kind, event, actor_type, phase, previous_phase, pending_reason, tenant_id, resource_id, actor_id,
        runner_id, error_code, request_id, details)
