"""Seals of the change log and statistics.

Deploy: pre.
"""

from alembic import op

revision = "0005"
down_revision = "0004"

SEALS = """
-- A chain over the change log: each seal covers every change above the former one's id, up to its own.
CREATE TABLE seals (
    last_id bigint PRIMARY KEY,
    after_id bigint NOT NULL UNIQUE,
    change_count bigint NOT NULL CHECK (change_count > 0),
    first_time timestamptz NOT NULL,
    last_time timestamptz NOT NULL,
    seal_time timestamptz NOT NULL DEFAULT now(),
    -- How the rows were turned into bytes.
    form smallint NOT NULL,
    previous_hash bytea NOT NULL CHECK (length(previous_hash) = 32),
    hash bytea NOT NULL CHECK (length(hash) = 32),
    CONSTRAINT seal_covers_ids CHECK (after_id < last_id)
);
"""

# One index answers by resource, tenant, actor and event together, for less than a byte of log per change.
AUDIT = """
DROP INDEX IF EXISTS changes_by_resource;
CREATE INDEX changes_audit ON changes USING brin (id int8_minmax_ops, resource_id text_bloom_ops,
    tenant_id text_bloom_ops, actor_id text_bloom_ops, event int2_bloom_ops)
    WITH (pages_per_range = 16, autosummarize = on);
"""

STATS = """
-- Tasks by quarter of an hour of their creation, type and phase, folded from the change log.
CREATE TABLE task_counts (
    quarter timestamptz NOT NULL,
    phase smallint NOT NULL,
    task_count bigint NOT NULL,
    retry_count bigint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, quarter, task_type, phase)
) WITH (fillfactor = 70);
CREATE INDEX task_counts_by_quarter ON task_counts (quarter);

-- Their durations: 1 from start to end of a success, 2 from creation to start; a step is a quarter of a power of two
-- of milliseconds.
CREATE TABLE task_durations (
    quarter timestamptz NOT NULL,
    kind smallint NOT NULL,
    step smallint NOT NULL,
    task_count bigint NOT NULL,
    seconds double precision NOT NULL,
    longest double precision NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    task_type text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, quarter, task_type, kind, step)
) WITH (fillfactor = 70);
CREATE INDEX task_durations_by_quarter ON task_durations (quarter);

-- How far the log is folded.
CREATE TABLE task_stats_place (
    last_id bigint NOT NULL,
    fold_time timestamptz NOT NULL
);
CREATE UNIQUE INDEX task_stats_place_is_one ON task_stats_place ((true));
INSERT INTO task_stats_place (last_id, fold_time) VALUES (0, 'epoch');
"""


def upgrade() -> None:
    for part in (SEALS, AUDIT, STATS):
        op.execute(part)


def downgrade() -> None:
    for table in ("task_stats_place", "task_durations", "task_counts", "seals"):
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP INDEX changes_audit")
    op.execute(
        "CREATE INDEX changes_by_resource ON changes USING brin (resource_id text_bloom_ops)"
        " WITH (pages_per_range = 16, autosummarize = on)"
    )
