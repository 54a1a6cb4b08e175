"""Stores the entities that tasks of some types must name."""
