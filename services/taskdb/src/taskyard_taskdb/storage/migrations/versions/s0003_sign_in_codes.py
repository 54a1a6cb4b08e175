"""Sign-in codes, and keys that they were exchanged for.

Deploy: pre. Code of before neither reads nor writes the new table and column.
"""

from alembic import op

revision = "s0003"
down_revision = "s0002"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE api_keys ADD COLUMN parent_key_id text COLLATE "C" REFERENCES api_keys ON DELETE CASCADE;
        CREATE INDEX api_keys_by_parent ON api_keys (parent_key_id) WHERE parent_key_id IS NOT NULL;
        CREATE TABLE sign_in_codes (
            code_id text COLLATE "C" PRIMARY KEY,
            secret_hash bytea NOT NULL,
            key_id text COLLATE "C" NOT NULL REFERENCES api_keys ON DELETE CASCADE,
            expire_time timestamptz NOT NULL
        );
        CREATE INDEX sign_in_codes_by_key ON sign_in_codes (key_id, expire_time);
    """)


def downgrade() -> None:
    op.execute("DROP TABLE sign_in_codes")
    op.execute("ALTER TABLE api_keys DROP COLUMN parent_key_id")
