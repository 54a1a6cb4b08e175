"""The registry of entities, and tasks of kind EMBEDDED.

Deploy: pre. Code of before does not read the new table, and stores no task of the new kind.
"""

from alembic import op

revision = "s0007"
down_revision = "s0006"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE entities (
            create_time timestamptz NOT NULL DEFAULT now(),
            tenant_id text COLLATE "C" NOT NULL REFERENCES tenants ON DELETE CASCADE,
            entity_type text COLLATE "C" NOT NULL,
            entity_id text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant_id, entity_type, entity_id)
        );
        ALTER TABLE tasks DROP CONSTRAINT task_kind, ADD CONSTRAINT task_kind CHECK (kind BETWEEN 1 AND 7) NOT VALID;
        ALTER TABLE tasks VALIDATE CONSTRAINT task_kind;
    """)


def downgrade() -> None:
    op.execute("""
        DROP TABLE entities;
        ALTER TABLE tasks DROP CONSTRAINT task_kind, ADD CONSTRAINT task_kind CHECK (kind BETWEEN 1 AND 6) NOT VALID;
        ALTER TABLE tasks VALIDATE CONSTRAINT task_kind;
    """)
