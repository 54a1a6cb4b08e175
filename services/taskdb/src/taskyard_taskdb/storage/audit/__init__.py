"""The audit: the change log as people query it, and the hash chain that seals it.

Writes seals and facts.
"""
