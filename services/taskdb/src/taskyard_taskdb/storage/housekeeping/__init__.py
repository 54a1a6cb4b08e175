"""What the leader needs: its own row, job runs, overdue rows, monthly partitions, the end of a restore.

Writes coordinator_state, job_runs, facts, partitions; deletes expired rows of sessions, timers, keys and
checkpoints.
"""
