-- name: complete_runs
-- What locks and which indexes serve is described with the function; it commits by itself.
SELECT * FROM complete_runs_v1(%(log_lock)s::bigint, %(tenant_ids)s::text[], %(task_ids)s::text,
    %(generations)s::bigint[], %(lease_ids)s::bigint[], %(runner_ids)s::text[], %(start_times)s::timestamptz[],
    %(end_times)s::timestamptz[], %(results)s::bytea[], %(exit_codes)s::integer[], %(checkpoints)s::bigint[],
    %(log_sequences)s::bigint[])
