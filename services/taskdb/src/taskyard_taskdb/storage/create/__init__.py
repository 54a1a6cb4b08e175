"""Creates tasks: one transaction stores many, with their request ids, queue rows and changes.

Writes tasks, queue, changes, idempotency_keys, placement_classes; tenant counters and slots through their
packages.
"""
