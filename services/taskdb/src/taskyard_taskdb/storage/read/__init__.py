"""Reads tasks: single tasks, filtered lists in pages, runs, and the facts that explain why a task waits.

Writes nothing.
"""
