"""Watches: each replica reads the change log once and delivers it to all of its streams."""
