"""Writes what the lifecycle decided: locks tasks in the one lock order, then runs a few guarded updates.

Writes tasks, leases, runs, queue, timers, revocations and changes; slots, counters and webhooks through
their packages.
"""
