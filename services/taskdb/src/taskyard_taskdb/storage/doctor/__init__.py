"""The doctor: checks that recompute the invariants, and repairs on request.

Writes whatever a repair restores: leases, queue, tasks, timers, webhooks.
"""
