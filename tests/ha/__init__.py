"""The suite over a PostgreSQL that Patroni manages; `make ha` runs it."""
