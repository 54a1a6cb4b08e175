"""Every table, view and function, and the rows that a new database has.

Deploy: pre. The statements are in the files of `s0001`, one per part of the schema. The revisions 0001 to 0008
were never released and are not part of this chain; taskyard_taskdb.storage.migrate rejects their databases.
"""

from pathlib import Path

from alembic import op

revision = "s0001"
down_revision = None

# In the order of their references.
PARTS = ("tenants", "tasks", "queue", "leases", "runners", "log", "housekeeping")

ROWS = (
    "INSERT INTO coordinator_state (key, value, expires_at) VALUES ('leader_lock', '', now())",
    "INSERT INTO facts (key, value) VALUES ('restore_epoch', '1')",
    "INSERT INTO task_stats_place (last_id, fold_time) VALUES (0, 'epoch')",
)

# Without statistics PostgreSQL assumes that a tenant has every 200th row, and of some hundred rows an index that
# begins with the tenant seems to find one as well as the primary key does, in fewer pages. These statistics, that
# one tenant may have all rows, are used until real rows are analysed.
STATISTICS = (
    """
    INSERT INTO tasks (tenant_id, task_id, phase, class_id, create_time, update_time, max_retries, kind, priority,
        creator_type, spec)
    SELECT 'one', n::text, 1, 1, now(), now(), 0, 1, 0, 1, '' FROM generate_series(1, 1000) n
    """,
    "ANALYZE tasks (tenant_id, task_id)",
    "TRUNCATE tasks",
)

TABLES = """
    api_keys changes checkpoints coordinator_state facts idempotency_keys inbox job_runs leases logs
    placement_classes quarantine_holds quarantines queue revocations runner_counts runners runs runs_archive
    seals sessions slots task_counts task_durations task_stats_place task_type_revisions task_types tasks
    tasks_archive tenant_counters tenant_usage tenants timers webhook_secrets webhooks
"""


def upgrade() -> None:
    folder = Path(__file__).parents[1] / revision
    for part in PARTS:
        op.execute((folder / f"{part}.sql").read_text())
    for statement in (*STATISTICS, *ROWS):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP FUNCTION oldest_live(text)")
    op.execute("DROP VIEW ended_runs, change_log")
    op.execute(f"DROP TABLE {', '.join(TABLES.split())}")
    op.execute("DROP SEQUENCE changes_id")
