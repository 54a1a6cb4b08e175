"""Alembic's entry: runs the migrations on the connection that taskyard_taskdb.storage.migrate hands over."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    transaction_per_migration=True,
    on_version_apply=context.config.attributes["on_version_apply"],
)
with context.begin_transaction():
    context.run_migrations()
