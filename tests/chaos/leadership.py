"""Who writes as the leader of housekeeping: triggers note each term, and each write that is a leader's.

The replicas are named by the application_name of their connections. A task that a timer makes claimable is
queued by the leader alone; one that waits for a slot or for other tasks is also queued by the transaction
that ends its wait.
"""

from __future__ import annotations

from typing import NamedTuple

import psycopg

QUEUED = 24
INSTALL = f"""
CREATE SCHEMA chaos;
CREATE TABLE chaos.terms (epoch bigint PRIMARY KEY, leader text NOT NULL);
CREATE TABLE chaos.leader_writes (task_id text NOT NULL, writer text NOT NULL, leader text);
CREATE FUNCTION chaos.note_term() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.terms VALUES (NEW.epoch, current_setting('application_name')) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_terms AFTER UPDATE ON coordinator_state FOR EACH ROW
    WHEN (NEW.key = 'leader_lock') EXECUTE FUNCTION chaos.note_term();
CREATE FUNCTION chaos.note_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.leader_writes SELECT NEW.resource_id, current_setting('application_name'),
        (SELECT leader FROM chaos.terms ORDER BY epoch DESC LIMIT 1);
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_writes AFTER INSERT ON changes FOR EACH ROW
    WHEN (NEW.event = {QUEUED}) EXECUTE FUNCTION chaos.note_write();
"""


class LeaderWrite(NamedTuple):
    """A write of the replica `writer` while `leader` had the newest term."""

    task: str
    writer: str
    leader: str


def install(url: str) -> None:
    """Creates the triggers in a migrated database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(INSTALL)


def read_writes(connection: psycopg.Connection[tuple[object, ...]]) -> list[LeaderWrite]:
    """Everything noted; nothing where the triggers are not installed."""
    if connection.execute("SELECT to_regclass('chaos.leader_writes')").fetchone() == (None,):
        return []
    rows = connection.execute("SELECT task_id, writer, coalesce(leader, '') FROM chaos.leader_writes")
    return [LeaderWrite(*(str(value) for value in row)) for row in rows]
