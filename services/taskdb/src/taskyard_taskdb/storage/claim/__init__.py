"""Claims tasks for runners: the heads of lanes are chosen, locked with SKIP LOCKED and turned into leases.

Writes queue, leases, runs (expired leases that a claim replaces) and changes.
"""
