"""Named limits: definitions, and the admission of tasks that name them.

Writes limits, limit_keys, limit_starts and task_limits, and the flag of limits in tasks.
"""
