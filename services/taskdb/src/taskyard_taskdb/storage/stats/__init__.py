"""Statistics of tasks: counts and durations folded from the change log.

Writes task_counts, task_durations, task_minutes and task_stats_place.
"""
