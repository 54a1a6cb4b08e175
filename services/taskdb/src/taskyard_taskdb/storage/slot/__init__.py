"""Slots: at most one task heads a slot, and a freed slot passes to its next waiter.

Writes slots.
"""
