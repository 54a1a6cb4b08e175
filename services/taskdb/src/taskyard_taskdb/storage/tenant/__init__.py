"""Tenants and what they own: limits, counters, usage for fair shares, API keys, task types; removal.

Writes tenants, tenant_counters, tenant_usage, api_keys, revocations of keys, task_types and their
revisions.
"""
