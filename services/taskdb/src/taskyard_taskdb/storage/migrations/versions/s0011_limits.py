"""Named limits.

Deploy: pre. The column has no default, so that no row is rewritten; code of before stores no limits.
"""

from alembic import op

revision = "s0011"
down_revision = "s0010"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE tasks ADD COLUMN limited boolean;
        ALTER TABLE tasks_archive ADD COLUMN limited boolean;
        CREATE TABLE limits (
            try_time timestamptz,
            delete_time timestamptz,
            version bigint NOT NULL DEFAULT 1,
            create_time timestamptz NOT NULL DEFAULT now(),
            update_time timestamptz NOT NULL DEFAULT now(),
            held bigint NOT NULL DEFAULT 0 CONSTRAINT limit_held CHECK (held >= 0),
            max_running integer NOT NULL DEFAULT 0,
            max_running_per_key integer NOT NULL DEFAULT 0,
            starts_count integer,
            starts_per_key_count integer,
            uid uuid NOT NULL,
            starts_per interval,
            starts_per_key_per interval,
            tenant_id text COLLATE "C" NOT NULL REFERENCES tenants ON DELETE CASCADE,
            limit_id text COLLATE "C" NOT NULL CONSTRAINT limit_id CHECK (length(limit_id) BETWEEN 1 AND 64),
            last_key text COLLATE "C" NOT NULL DEFAULT '',
            description text NOT NULL DEFAULT '',
            PRIMARY KEY (tenant_id, limit_id),
            CONSTRAINT limit_starts CHECK ((starts_count IS NULL) = (starts_per IS NULL)),
            CONSTRAINT limit_starts_per_key CHECK ((starts_per_key_count IS NULL) = (starts_per_key_per IS NULL))
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
        CREATE INDEX limits_due ON limits (try_time) WHERE try_time IS NOT NULL;
        CREATE TABLE limit_keys (
            held bigint NOT NULL CONSTRAINT limit_key_held CHECK (held > 0),
            tenant_id text COLLATE "C" NOT NULL,
            limit_id text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant_id, limit_id, key)
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
        CREATE TABLE limit_starts (
            entry_time timestamptz NOT NULL,
            time timestamptz NOT NULL,
            units bigint NOT NULL,
            of_key boolean NOT NULL,
            tenant_id text COLLATE "C" NOT NULL,
            limit_id text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant_id, limit_id, of_key, key, entry_time)
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
        CREATE TABLE task_limits (
            wait_time timestamptz,
            units integer NOT NULL CONSTRAINT task_limit_units CHECK (units > 0),
            held boolean NOT NULL DEFAULT false,
            untried boolean NOT NULL DEFAULT false,
            tenant_id text COLLATE "C" NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            limit_id text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant_id, task_id, limit_id),
            CONSTRAINT untried_waits CHECK (NOT untried OR wait_time IS NOT NULL)
        ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
        CREATE INDEX task_limits_waiting ON task_limits (tenant_id, limit_id, key, wait_time, task_id)
            WHERE wait_time IS NOT NULL;
        CREATE INDEX task_limits_untried ON task_limits (tenant_id, limit_id) WHERE untried;
    """)


def downgrade() -> None:
    op.execute("DROP TABLE task_limits, limit_starts, limit_keys, limits")
    op.execute("ALTER TABLE tasks DROP COLUMN limited")
    op.execute("ALTER TABLE tasks_archive DROP COLUMN limited")
