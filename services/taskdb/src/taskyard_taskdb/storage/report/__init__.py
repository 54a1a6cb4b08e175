"""Stores reports of holders: starts, outcomes, progress, checkpoints, output; and of external tasks.

Writes leases, tasks and runs (plain successes), checkpoints, logs and inbox; all else through transition/.
"""
