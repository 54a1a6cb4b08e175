"""The doctor: checks that recompute the invariants, and repairs on request.

A repair may write leases, queue, tasks, timers, webhooks.
"""
