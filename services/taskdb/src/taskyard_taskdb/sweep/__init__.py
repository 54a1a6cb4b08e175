"""Housekeeping of the leader: sweeps run all the time, jobs by schedule, and webhooks are sent.

leader_election acquires and renews the leadership; sweeper runs the sweeps (timers, lease_expiry, log_seals,
small_sweeps); jobs runs and records the jobs (maintenance_jobs, retention); webhook_sender signs and sends.
Every transaction that writes checks the leadership first.
"""
