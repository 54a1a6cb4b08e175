"""All SQL of taskdb: the schema, its migrations, and what reads and writes each table."""
