"""The archive: ended tasks move here after their retention, with their runs.

Writes tasks_archive and runs_archive; deletes from tasks and runs.
"""
