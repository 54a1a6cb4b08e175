"""Groups of tasks: their counts, and what happens when one is complete.

Writes groups and group_deltas, and dependency_backlog and webhooks for groups that became complete.
"""
