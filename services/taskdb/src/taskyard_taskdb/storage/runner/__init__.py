"""Runners: registration, drain, labels, and the counts of their outcomes.

Writes runners, runner_counts and closes sessions of deleted runners.
"""
