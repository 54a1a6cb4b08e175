CREATE FUNCTION claim_tasks_v1(
    claim_id text, scheduler_id text, log_lock bigint, max_bytes bigint,
    claim_runners text[], claim_epochs bigint[], claim_durations interval[],
    lane_tenants text[], lane_classes bigint[], lane_priorities smallint[], lane_pins text[],
    lane_bounds timestamptz[], lane_offsets interval[], lane_bundles integer[], lane_counts integer[],
    lane_pages integer[], lane_seats integer[], seat_starts integer[], seat_claims integer[], drawn bigint[]
) RETURNS TABLE (
    lane integer, drained boolean, last_time timestamptz, passed_time timestamptz, claim integer, task_id text,
    lease_id bigint, generation integer, attempt integer, spec bytea, labels jsonb, total_left interval,
    traceparent text, checkpoint_sequence bigint, task_type_revision bigint, task_type text, task_type_tenant text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    admitted boolean;
    chosen_lanes integer[];
    chosen_seats integer[];
    chosen_tenants text[];
    chosen_ids text[];
    chosen_places tid[];
    any_lease boolean;
    seen_lanes integer[];
    seen_drained boolean[];
    seen_last timestamptz[];
    seen_passed timestamptz[];
    claim_time timestamptz;
    granted bigint;
BEGIN
    -- Repeats of one request are serialised. A session that is superseded, closed or expired, or whose runner was
    -- deleted, is not admitted, and none that is admitted ends before the claim commits.
    PERFORM pg_advisory_xact_lock(hashtextextended(claim_id, 0));
    SELECT count(*) = cardinality(claim_runners)
        AND bool_and(coalesce(r.scope -> 'tenants', '[]') = '[]' OR r.scope -> 'tenants' @> to_jsonb(lane_tenants))
    INTO admitted
    FROM (
        SELECT * FROM unnest(claim_runners, claim_epochs) AS i (runner_id, epoch) ORDER BY i.runner_id COLLATE "C"
    ) i
    CROSS JOIN LATERAL (
        SELECT FROM sessions
        WHERE sessions.runner_id = i.runner_id AND sessions.epoch = i.epoch AND NOT sessions.closed
            AND sessions.expire_time > clock_timestamp()
        FOR SHARE
    ) s
    CROSS JOIN LATERAL (
        SELECT runners.scope FROM runners
        WHERE runners.runner_id = i.runner_id AND runners.delete_time IS NULL
        OFFSET 0
    ) r;
    IF NOT admitted OR EXISTS (
        SELECT FROM leases WHERE leases.runner_id = ANY (claim_runners) AND leases.claim_request_id = claim_id
    ) THEN
        lane := 0;
        RETURN NEXT;
        RETURN;
    END IF;
    FOR lane IN
        SELECT -w.n
        FROM unnest(lane_tenants) WITH ORDINALITY AS w (tenant_id, n)
        WHERE EXISTS (SELECT FROM tenant_counters x WHERE x.tenant_id = w.tenant_id)
            OR EXISTS (SELECT FROM quarantines x WHERE x.tenant_id = w.tenant_id AND x.release_time IS NULL)
    LOOP
        RETURN NEXT;
    END LOOP;
    IF FOUND THEN
        RETURN;
    END IF;

    -- Rows that another transaction has locked are skipped. What is found by its place lies there still: a statement
    -- has one snapshot.
    IF lane_pages IS NULL THEN
        WITH locked AS MATERIALIZED (
            SELECT w.*, q.*, row_number() OVER (PARTITION BY w.n ORDER BY q.ready_time, q.task_id) AS number
            FROM unnest(lane_tenants, lane_classes, lane_priorities, lane_pins, lane_bounds, lane_counts, lane_seats)
                WITH ORDINALITY AS w (tenant_id, class_id, priority, pinned_runner, bound, at_most, seat, n)
            CROSS JOIN LATERAL (
                SELECT queue.ctid AS at, queue.ready_time, queue.task_id, queue.has_lease
                FROM queue
                WHERE queue.tenant_id = w.tenant_id AND queue.class_id = w.class_id AND queue.priority = w.priority
                    AND queue.pinned_runner = w.pinned_runner AND queue.ready_time >= w.bound
                ORDER BY queue.ready_time, queue.task_id
                LIMIT w.at_most
                FOR UPDATE SKIP LOCKED
            ) q
            WHERE NOT EXISTS (SELECT FROM tenants t WHERE t.tenant_id = w.tenant_id AND (t.suspended OR t.queue_paused))
        ), ends AS (
            SELECT e.n, e.ready_time, e.number < e.at_most OR NOT EXISTS (
                SELECT FROM queue
                WHERE queue.tenant_id = e.tenant_id AND queue.class_id = e.class_id AND queue.priority = e.priority
                    AND queue.pinned_runner = e.pinned_runner
                    AND (queue.ready_time, queue.task_id) > (e.ready_time, e.task_id)
            ) AS drained
            FROM (SELECT DISTINCT ON (l.n) * FROM locked l ORDER BY l.n, l.number DESC) e
        )
        SELECT c.*, e.*
        INTO chosen_lanes, chosen_seats, chosen_tenants, chosen_ids, chosen_places, any_lease,
            seen_lanes, seen_drained, seen_last
        FROM (
            SELECT array_agg(l.n::integer), array_agg((l.seat + l.number - 1)::integer), array_agg(l.tenant_id),
                array_agg(l.task_id), array_agg(l.at), bool_or(l.has_lease)
            FROM locked l
        ) c,
        (SELECT array_agg(e.n::integer), array_agg(e.drained), array_agg(e.ready_time) FROM ends e) e;
    ELSE
        WITH head AS MATERIALIZED (
            SELECT w.n, w.tenant_id, w.bundle, w.at_most, w.page, w.seat, q.at, q.ready_time, q.task_id,
                q.ready_time - w.lead AS rank, q.number = w.page AS ends
            FROM unnest(lane_tenants, lane_classes, lane_priorities, lane_pins, lane_bounds, lane_offsets,
                    lane_bundles, lane_counts, lane_pages, lane_seats)
                WITH ORDINALITY AS w (tenant_id, class_id, priority, pinned_runner, bound, lead, bundle, at_most,
                    page, seat, n)
            CROSS JOIN LATERAL (
                SELECT queue.ctid AS at, queue.ready_time, queue.task_id,
                    row_number() OVER (ORDER BY queue.ready_time, queue.task_id) AS number
                FROM queue
                WHERE queue.tenant_id = w.tenant_id AND queue.class_id = w.class_id AND queue.priority = w.priority
                    AND queue.pinned_runner = w.pinned_runner AND queue.ready_time >= w.bound
                ORDER BY queue.ready_time, queue.task_id
                LIMIT w.page
            ) q
            WHERE NOT EXISTS (SELECT FROM tenants t WHERE t.tenant_id = w.tenant_id AND (t.suspended OR t.queue_paused))
        ), ranked AS (
            SELECT *, row_number() OVER turn AS place, count(*) FILTER (WHERE ends) OVER turn AS ended
            FROM head
            WINDOW turn AS (PARTITION BY bundle ORDER BY rank, n, task_id ROWS UNBOUNDED PRECEDING)
        ), locked AS MATERIALIZED (
            SELECT c.*, q.locked_at, q.has_lease
            FROM (SELECT *, place <= at_most AND ended - ends::integer = 0 AS chosen FROM ranked) c
            LEFT JOIN LATERAL (
                SELECT queue.ctid AS locked_at, queue.has_lease FROM queue WHERE c.chosen AND queue.ctid = c.at
                FOR UPDATE SKIP LOCKED
            ) q ON true
        ), seated AS (
            SELECT l.*, row_number() OVER (PARTITION BY l.bundle ORDER BY l.place) AS number
            FROM locked l WHERE l.locked_at IS NOT NULL
        ), lanes AS (
            SELECT l.n, count(*) < l.page AND bool_and(l.locked_at IS NOT NULL) AS drained,
                max(l.ready_time) FILTER (WHERE l.locked_at IS NOT NULL) AS last,
                min(l.ready_time) FILTER (WHERE l.chosen AND l.locked_at IS NULL) AS passed
            FROM locked l GROUP BY l.n, l.page
        )
        SELECT c.*, e.*
        INTO chosen_lanes, chosen_seats, chosen_tenants, chosen_ids, chosen_places, any_lease,
            seen_lanes, seen_drained, seen_last, seen_passed
        FROM (
            SELECT array_agg(s.n::integer), array_agg((s.seat + s.number - 1)::integer), array_agg(s.tenant_id),
                array_agg(s.task_id), array_agg(s.at), bool_or(s.has_lease)
            FROM seated s
        ) c,
        (SELECT array_agg(e.n::integer), array_agg(e.drained), array_agg(e.last), array_agg(e.passed) FROM lanes e) e;
    END IF;
    IF any_lease THEN
        lane := 0;
        RETURN NEXT;
        RETURN;
    END IF;

    -- No other writer touches a task whose queue row is locked here, so nothing waits. What would make the answer
    -- larger than a message may be, and what is of a paused type, stays in the queue; so does what no id was drawn for.
    claim_time := clock_timestamp();
    RETURN QUERY
    WITH log AS MATERIALIZED (
        SELECT pg_advisory_xact_lock_shared(log_lock)
    ), read AS (
        SELECT c.n, c.lane, c.claim, c.at, c.tenant_id, c.task_id, claim_runners[c.claim] AS runner_id,
            claim_epochs[c.claim] AS session_epoch, claim_time + claim_durations[c.claim] AS expire_time,
            drawn[c.n] AS lease_id, t.generation + 1 AS generation, t.version + 1 AS version, t.attempt,
            t.phase AS previous_phase, t.spec, t.labels, t.total_deadline, t.traceparent, t.checkpoint_sequence,
            coalesce(y.revision, 0) AS task_type_revision, coalesce(y.queue_paused, false) AS queue_paused,
            t.task_type, t.task_type_tenant, t.overlap, t.on_runner_lost,
            t.plain AND t.has_dependents IS NOT TRUE AND t.group_id IS NULL AND t.limited IS NULL
                AND NOT coalesce(y.checks_result, false) AS plain, t.timed, t.slot, t.retry_count, t.runner_loss_count,
            sum(octet_length(t.spec) + 512) OVER (ROWS UNBOUNDED PRECEDING) AS total_bytes
        FROM (
            SELECT i.n::integer, i.lane, i.tenant_id, i.task_id, i.at,
                seat_claims[width_bucket(i.seat, seat_starts)] AS claim
            FROM unnest(chosen_lanes, chosen_seats, chosen_tenants, chosen_ids, chosen_places)
                WITH ORDINALITY AS i (lane, seat, tenant_id, task_id, at, n)
        ) c
        CROSS JOIN LATERAL (
            SELECT * FROM tasks WHERE tasks.tenant_id = c.tenant_id AND tasks.task_id = c.task_id OFFSET 0
        ) t
        LEFT JOIN task_types y ON y.tenant_id = t.task_type_tenant AND y.task_type = t.task_type
    ), claimed AS MATERIALIZED (
        SELECT * FROM read
        WHERE NOT queue_paused AND (total_bytes <= max_bytes OR n = 1) AND lease_id IS NOT NULL
    ), gone AS (
        DELETE FROM queue USING claimed WHERE queue.ctid = claimed.at
    ), granted AS (
        INSERT INTO leases (generation, lease_id, version, session_epoch, schedule_time, expire_time,
            task_type_revision, attempt, phase, overlap, on_runner_lost, plain, timed, tenant_id, task_id, runner_id,
            claim_request_id, slot)
        SELECT generation, lease_id, version, session_epoch, claim_time, expire_time, task_type_revision, attempt,
            2::smallint, overlap, on_runner_lost, plain, timed, tenant_id, task_id, runner_id, claim_id, slot
        FROM claimed
    ), logged AS (
        INSERT INTO changes (time, version, generation, attempt, retry_count, runner_loss_count, event, actor_type,
            phase, previous_phase, tenant_id, resource_id, actor_id, runner_id)
        SELECT claim_time, version, generation, nullif(attempt, 0), nullif(retry_count, 0),
            nullif(runner_loss_count, 0), 2::smallint, 1::smallint, 2::smallint, previous_phase, tenant_id, task_id,
            scheduler_id, runner_id
        FROM log, claimed
    ), counted AS (
        UPDATE tenant_counters c SET pending = c.pending - n.waited, leased = c.leased + n.count
        FROM (
            SELECT tenant_id, count(*), count(*) FILTER (WHERE previous_phase = 1) AS waited FROM claimed
            WHERE EXISTS (SELECT FROM tenant_counters)
            GROUP BY 1 ORDER BY 1
        ) n
        CROSS JOIN LATERAL (SELECT FROM tenant_counters x WHERE x.tenant_id = n.tenant_id FOR UPDATE) l
        WHERE c.tenant_id = n.tenant_id
    )
    SELECT claimed.lane, NULL::boolean, NULL::timestamptz, NULL::timestamptz, claimed.claim, claimed.task_id,
        claimed.lease_id, claimed.generation, claimed.attempt, claimed.spec, claimed.labels,
        claimed.total_deadline - claim_time, claimed.traceparent, claimed.checkpoint_sequence,
        claimed.task_type_revision, claimed.task_type, claimed.task_type_tenant
    FROM claimed ORDER BY claimed.n;
    GET DIAGNOSTICS granted = ROW_COUNT;

    FOR lane, drained, last_time, passed_time IN
        SELECT s.lane, s.drained AND p.left_time IS NULL, s.last_time, least(s.passed_time, p.left_time)
        FROM unnest(seen_lanes, seen_drained, seen_last, seen_passed) AS s (lane, drained, last_time, passed_time)
        CROSS JOIN LATERAL (
            SELECT min(q.ready_time) AS left_time
            FROM unnest(chosen_lanes, chosen_places) AS c (lane, at)
            CROSS JOIN LATERAL (SELECT queue.ready_time FROM queue WHERE queue.ctid = c.at) q
            WHERE granted < cardinality(chosen_ids) AND c.lane = s.lane
        ) p
    LOOP
        RETURN NEXT;
    END LOOP;
END
$$
