"""The command line, `taskyard`: one module per group of verbs."""
