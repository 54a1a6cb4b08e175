-- name: claim_lane
-- Locks and deletes the head of one lane from its bound on, skipping what another transaction has: for pops that have no
-- other lane to compare with. Tells with each row whether the lane goes on behind the last one. Primary key of queue.
WITH locked AS MATERIALIZED (
    SELECT ctid AS at, ready_time, task_id, has_lease
    FROM queue
    WHERE tenant_id = %(tenant_id)s AND class_id = %(class_id)s AND priority = %(priority)s::smallint
        AND pinned_runner = %(pinned_runner)s AND ready_time >= %(after_time)s
        AND NOT EXISTS (SELECT FROM tenants WHERE tenants.tenant_id = %(tenant_id)s AND (suspended OR queue_paused))
    ORDER BY ready_time, task_id
    LIMIT %(at_most)s
    FOR UPDATE OF queue SKIP LOCKED
), gone AS (
    DELETE FROM queue USING locked WHERE queue.ctid = locked.at
), last AS MATERIALIZED (
    SELECT ready_time, task_id FROM locked ORDER BY ready_time DESC, task_id DESC LIMIT 1
)
SELECT ready_time, task_id, has_lease, EXISTS (
    SELECT FROM queue
    WHERE tenant_id = %(tenant_id)s AND class_id = %(class_id)s AND priority = %(priority)s::smallint
        AND pinned_runner = %(pinned_runner)s
        AND (ready_time, task_id) > ((SELECT ready_time FROM last), (SELECT task_id FROM last))) AS goes_on
FROM locked

-- name: claim_lanes
-- Compares the heads of the lanes of each bundle by ready_time less their offsets, unlocked and from behind a row on;
-- then locks what goes first, skipping what another transaction has, and deletes it. Where a page ends before a bundle
-- has what it wants, the next rows of that lane are not known and nothing behind its end is taken. Returns what was
-- chosen with its place, without has_lease where it was skipped, then how many rows of each lane were seen. What is
-- found by its place lies there still: the statement has one snapshot. Primary key of queue.
WITH head AS MATERIALIZED (
    SELECT lane.n, lane.bundle, lane.at_most, q.at, q.ready_time, q.task_id, q.ready_time - lane.lead AS rank,
        q.number = lane.page AS ends
    FROM unnest(%(tenant_ids)s::text[], %(class_ids)s::bigint[], %(priorities)s::smallint[],
            %(pinned_runners)s::text[], %(after_times)s::timestamptz[], %(after_ids)s::text[],
            %(offsets)s::interval[], %(bundles)s::integer[], %(counts)s::integer[], %(pages)s::integer[])
        WITH ORDINALITY AS lane (tenant_id, class_id, priority, pinned_runner, after_time, after_id, lead, bundle,
            at_most, page, n)
    LEFT JOIN tenants t ON t.tenant_id = lane.tenant_id
    CROSS JOIN LATERAL (
        SELECT ctid AS at, ready_time, task_id, row_number() OVER (ORDER BY ready_time, task_id) AS number
        FROM queue
        WHERE queue.tenant_id = lane.tenant_id AND queue.class_id = lane.class_id AND queue.priority = lane.priority
            AND queue.pinned_runner = lane.pinned_runner
            AND (queue.ready_time, queue.task_id) > (lane.after_time, lane.after_id)
        ORDER BY ready_time, task_id
        LIMIT lane.page
    ) q
    WHERE NOT coalesce(t.suspended OR t.queue_paused, false)
), ranked AS (
    SELECT *, row_number() OVER turn AS place, count(*) FILTER (WHERE ends) OVER turn AS ended
    FROM head
    WINDOW turn AS (PARTITION BY bundle ORDER BY rank, n, task_id ROWS UNBOUNDED PRECEDING)
), locked AS MATERIALIZED (
    SELECT c.n, c.place, c.task_id, c.ready_time, q.at, q.has_lease
    FROM ranked c
    LEFT JOIN LATERAL (
        SELECT ctid AS at, has_lease FROM queue WHERE queue.ctid = c.at FOR UPDATE SKIP LOCKED
    ) q ON true
    WHERE c.place <= c.at_most AND c.ended - c.ends::integer = 0
), gone AS (
    DELETE FROM queue USING locked WHERE queue.ctid = locked.at
)
SELECT n, place, task_id, ready_time, has_lease FROM locked
UNION ALL
SELECT n, count(*), NULL, NULL, NULL FROM head GROUP BY n
