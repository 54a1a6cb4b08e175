"""The change log as a query of tests: one row for each change that watches and audits show."""

# A success (8) from SCHEDULED (2) stands for its start (3) as well, which has the id before it.
LOGGED = """(
SELECT c.id - e.before AS id, c.time, c.version - e.before AS version, c.generation, c.next_attempt_time,
    c.attempt, c.retry_count, c.runner_loss_count, e.exit_code, c.resource_kind, e.event, c.actor_type,
    e.phase, e.previous_phase, c.pending_reason, c.tenant_id, c.resource_id, c.actor_id, c.runner_id,
    c.error_code,
    c.request_id, c.details
FROM change_log c
CROSS JOIN LATERAL (SELECT c.event = 8 AND c.previous_phase = 2 AS paired) p
CROSS JOIN LATERAL (
    SELECT 0 AS before, c.event, c.phase, CASE WHEN paired THEN 3 ELSE c.previous_phase END AS previous_phase,
        c.exit_code
    UNION ALL
    SELECT 1, 3, 3, 2, NULL WHERE paired
) e
) AS logged"""
