"""Storage of housekeeping: the leader lock, job runs, overdue rows, monthly partitions, restored backups.

Writes coordinator_state, job_runs, facts, partitions; deletes expired rows of sessions, timers, keys and
checkpoints.
"""
