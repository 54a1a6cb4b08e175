"""Schedules: definitions, the cursor of each, and the transaction in which due instants are handled."""
