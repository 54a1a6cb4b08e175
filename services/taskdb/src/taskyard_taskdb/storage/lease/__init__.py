"""Keeps leases alive: sessions of runners, heartbeats that renew them, and the answers to a hello.

Writes sessions and the session columns of leases.
"""
