"""The rows of the state machine's table, one module per kind of cause."""
