"""Quarantines: specs that lost too many runners, and the tasks that are held because of them.

Writes quarantines and quarantine_holds.
"""
