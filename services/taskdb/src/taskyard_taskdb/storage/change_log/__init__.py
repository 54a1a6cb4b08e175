"""The change log: writers append under the shared log lock; watches, audit and statistics read it.

Writes changes, and the epochs of the log in facts.
"""
