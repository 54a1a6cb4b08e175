"""Quarantines: specs that cost too many runners, and the tasks that are held back because of them.

Writes quarantines and quarantine_holds.
"""
