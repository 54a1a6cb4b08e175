"""All SQL of taskdb, one package per verb or noun, each with its .sql beside its Python."""
