"""The audit: queries of the change log, and the hash chain that seals it.

Writes seals and facts.
"""
