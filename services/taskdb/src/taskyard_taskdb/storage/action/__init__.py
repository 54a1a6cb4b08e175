"""Applies user requests: cancel, pause, resume, retry, delete and edit, as the lifecycle decides.

Writes the documents of tasks on an edit; all else through transition/.
"""
