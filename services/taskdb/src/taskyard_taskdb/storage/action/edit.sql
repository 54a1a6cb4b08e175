-- name: edit_documents
-- Writes the documents of a task that the transaction has locked; primary key of tasks.
UPDATE tasks SET kind = %s, spec = %s, callback = %s, annotations = %s, labels = %s::jsonb
WHERE tenant_id = %s AND task_id = %s
