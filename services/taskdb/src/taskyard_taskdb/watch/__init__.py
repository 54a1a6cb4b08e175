"""Watching: one reader of the change log per replica, fanned out to every stream."""
