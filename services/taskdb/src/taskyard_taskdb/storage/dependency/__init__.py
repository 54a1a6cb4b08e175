"""Dependencies: tasks that wait for others, released with the outcome of the last one or by the sweep.

Writes dependencies, blocked_tasks and dependency_backlog, and the flags of dependencies in tasks and leases.
"""
