"""Notifications after a commit, within this process and to the other replicas over NOTIFY.

Writes nothing.
"""
