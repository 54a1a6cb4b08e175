"""All of Taskyard on one machine: an embedded PostgreSQL and the supervisor behind `taskyard up`."""
