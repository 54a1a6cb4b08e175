-- name: insert_entities
-- Locks only the rows that it inserts, in key order; those that exist stay as they are. Returns the number of new rows.
WITH made AS (
    INSERT INTO entities (tenant_id, entity_type, entity_id)
    SELECT DISTINCT %(tenant)s, i.entity_type, i.entity_id
    FROM unnest(%(types)s::text[], %(ids)s::text[]) AS i (entity_type, entity_id)
    ORDER BY 2, 3
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT count(*) FROM made;

-- name: find_entities
-- No lock. Primary key.
SELECT e.entity_type, e.entity_id
FROM unnest(%(types)s::text[], %(ids)s::text[]) AS i (entity_type, entity_id)
JOIN entities e ON e.tenant_id = %(tenant)s AND e.entity_type = i.entity_type AND e.entity_id = i.entity_id;

-- name: list_entities
-- No lock. Primary key.
SELECT entity_id, create_time FROM entities
WHERE tenant_id = %(tenant)s AND entity_type = %(type)s AND entity_id > %(after)s
ORDER BY entity_id LIMIT %(limit)s;

-- name: delete_entity
-- Locks the row that it deletes. Primary key.
DELETE FROM entities WHERE tenant_id = %(tenant)s AND entity_type = %(type)s AND entity_id = %(id)s;
