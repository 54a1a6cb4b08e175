-- name: read_job_runs
-- Locks nothing; the table has a row per job. The database's time comes along.
SELECT job, start_time, end_time, success_time, item_count, error, statement_timestamp() FROM job_runs ORDER BY job

-- name: begin_job_run
-- Locks or makes the row of a job; primary key of job_runs.
INSERT INTO job_runs AS j (job, start_time) VALUES (%(job)s, statement_timestamp())
ON CONFLICT (job) DO UPDATE SET start_time = excluded.start_time, end_time = NULL, item_count = 0, error = NULL

-- name: end_job_run
-- Writes the row of a job; primary key of job_runs.
UPDATE job_runs SET end_time = statement_timestamp(), item_count = %(items)s, error = %(error)s,
    success_time = CASE WHEN %(error)s::text IS NULL THEN statement_timestamp() ELSE success_time END
WHERE job = %(job)s

-- name: lock_job
-- Lets one page of a job at a time change anything, whoever runs it; nobody else takes this advisory lock, and it comes
-- before all row locks.
SELECT pg_advisory_xact_lock(hashtextextended('job/' || %(job)s, 0))
