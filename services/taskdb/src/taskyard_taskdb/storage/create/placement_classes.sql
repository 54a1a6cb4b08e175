-- name: insert_classes
-- Inserts in key order; waits for a concurrent insert of the same class, then leaves it alone.
INSERT INTO placement_classes (tenant_id, class_id, definition, create_time)
SELECT %s, k.class_id, k.definition, now()
FROM unnest(%s::bigint[], %s::bytea[]) AS k (class_id, definition)
ORDER BY k.class_id
ON CONFLICT (tenant_id, class_id) DO NOTHING

-- name: count_classes
-- Counts by primary key up to a limit, no lock.
SELECT count(*)::integer FROM (SELECT 1 FROM placement_classes WHERE tenant_id = %s LIMIT %s) c

-- name: find_classes
-- Reads by primary key, no lock.
SELECT class_id FROM placement_classes WHERE tenant_id = %s AND class_id = ANY (%s::bigint[])

-- name: delete_new_classes
-- Deletes, by primary key, what this transaction has inserted: now() is its beginning.
DELETE FROM placement_classes WHERE tenant_id = %s AND class_id = ANY (%s::bigint[]) AND create_time = now()

-- name: delete_dead_classes
-- Scans tasks_by_creation from the tenant's oldest live task on; deletes classes that no live task has.
DELETE FROM placement_classes p
WHERE p.tenant_id = %(tenant)s AND p.create_time < now() - %(age)s::interval
    AND p.class_id NOT IN (SELECT t.class_id FROM tasks t WHERE t.tenant_id = %(tenant)s
        AND t.end_time IS NULL AND t.create_time >= oldest_live(%(tenant)s))
