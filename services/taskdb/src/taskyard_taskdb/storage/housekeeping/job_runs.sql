-- name: read_job_runs
-- Locks nothing; the table has a row per job. Also returns the time of the database.
SELECT job, run, start_time, seen_time, end_time, success_time, item_count, failure_count, error, statement_timestamp()
FROM job_runs ORDER BY job

-- name: begin_job_run
-- Locks or inserts the row of a job; primary key of job_runs. Returns no row while another run is alive.
INSERT INTO job_runs AS j (job, run, start_time, seen_time)
VALUES (%(job)s, 1, statement_timestamp(), statement_timestamp())
ON CONFLICT (job) DO UPDATE SET run = j.run + 1, start_time = statement_timestamp(), seen_time = statement_timestamp(),
    end_time = NULL, item_count = 0, error = NULL
WHERE j.end_time IS NOT NULL OR j.seen_time <= statement_timestamp() - %(silence)s::interval
RETURNING run

-- name: heartbeat_job_run
-- Locks the row of a job for the rest of the transaction, if this is still its run; taken before all other row locks.
-- Primary key of job_runs.
UPDATE job_runs SET seen_time = statement_timestamp(), item_count = %(items)s
WHERE job = %(job)s AND run = %(run)s AND end_time IS NULL

-- name: end_job_run
-- Writes the row of a job, if this is still its run; primary key of job_runs.
UPDATE job_runs SET end_time = statement_timestamp(), item_count = %(items)s, error = %(error)s,
    success_time = CASE WHEN %(error)s::text IS NULL THEN statement_timestamp() ELSE success_time END,
    failure_count = CASE WHEN %(error)s::text IS NULL THEN 0 ELSE failure_count + 1 END
WHERE job = %(job)s AND run = %(run)s AND end_time IS NULL
